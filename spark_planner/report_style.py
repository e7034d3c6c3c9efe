"""The style of the report: its layout, and the colour of every tone in light and in dark."""

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--page:#f4f6f6;--card:#fff;--ink:#1b2a32;--soft:#5a6b74;--rule:#dde4e6;
--track:#e9eeef;--ilp:#7891a5;--ties:#2f7fc4;--loga:#7a6bb0;--best:#0b7a75;--bound:#8a8f94;--plan:#4f7a12;
--improvement:#b86a00;--hard:#b3261e}
@media(prefers-color-scheme:dark){:root{--page:#10171b;--card:#182228;--ink:#e4ecef;--soft:#9bacb5;--rule:#2c3a42;
--track:#26333a;--ilp:#7f9bb1;--ties:#62aef0;--loga:#a596dd;--best:#3dbdb3;--bound:#8c979e;--plan:#9cc653;
--improvement:#eba340;--hard:#f2857c}}
*{box-sizing:border-box}
body{margin:0 auto;padding:32px 20px 40px;max-width:1100px;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;
font-variant-numeric:tabular-nums}
h1,h2,p,ul,dl,dd,figure{margin:0;padding:0}
h1{font-size:28px;line-height:1.2;letter-spacing:-.01em}
h2{font-size:16px;line-height:1.3}
small,.caption,figcaption,footer,.note,.about,.limits,.legend,caption{color:var(--soft);font-size:13px}
.eyebrow{color:var(--best);font-weight:600;font-size:13px}
.about{margin-top:2px}
.lede{margin:18px 0 22px;max-width:46em;font-size:18px;line-height:1.5}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(158px,1fr));gap:1px;overflow:hidden;
border:1px solid var(--rule);border-radius:10px;background:var(--rule)}
.tiles>div{padding:14px 16px;background:var(--card)}
.tiles dt{color:var(--soft);font-size:13px}
.big{font-size:23px;font-weight:600;line-height:1.35}
.limits{margin-top:12px}
.limits>span{margin-right:14px;white-space:nowrap}.limits b{color:var(--ink)}
aside{margin-top:16px;padding:12px 16px;border-left:4px solid var(--improvement);background:var(--card)}
.reasons{padding-left:18px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:18px;margin-top:18px}
.card{min-width:0;padding:18px 20px 16px;border:1px solid var(--rule);border-radius:10px;background:var(--card)}
.wide{grid-column:1/-1}
.caption,figcaption{margin-top:10px}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;margin-top:6px;list-style:none}
.legend span{color:var(--soft)}
i{display:inline-block;width:10px;height:10px;margin-right:6px;border-radius:2px;background:currentColor}
.ilp{color:var(--ilp)}.ties{color:var(--ties)}.loga{color:var(--loga)}
.best{color:var(--best)}.bound{color:var(--bound)}
.plan{color:var(--plan)}.improvement{color:var(--improvement)}.hard{color:var(--hard)}
.chart{display:block;width:100%;height:auto;margin-top:10px;overflow:visible}
.chart text{fill:var(--soft);font-size:12px}
.chart .name,.chart .value{fill:var(--ink)}
.chart .flag{fill:currentColor;font-weight:600;paint-order:stroke;stroke:var(--card);stroke-width:4px}
.fill{fill:currentColor}
.stroke,.mark,.grid,.base{fill:none}
.stroke{stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.dashed{stroke-dasharray:5 4;stroke-width:1.5}
.mark{stroke:currentColor;stroke-width:1.5}
.grid{stroke:var(--rule)}.base{stroke:var(--soft)}
.track{fill:var(--track)}.tick{fill:var(--ink)}
.small{display:block;width:100%;height:5px;margin-top:3px}
.note .small{margin:4px 0 5px}
details{margin-top:8px}
summary{width:max-content;color:var(--best);font-size:13px;cursor:pointer}
.scroll{margin-top:8px;overflow:auto}details .scroll{max-height:420px}
table{width:100%;border-collapse:collapse;font-size:14px}
caption{padding-bottom:6px;text-align:left}.list td{min-width:96px;white-space:nowrap}
.list caption{position:absolute;width:1px;height:1px;overflow:hidden}
th,td{padding:6px 0 6px 18px;border-top:1px solid var(--rule);text-align:right;vertical-align:top;font-weight:400}
th:first-child{min-width:5.5em;padding-left:0;text-align:left;overflow-wrap:anywhere}
thead th{border-top:0;color:var(--soft);font-size:13px;vertical-align:bottom}
code{display:block;color:var(--soft);font-size:12.5px;overflow-wrap:anywhere}
footer{margin-top:22px;max-width:62em}
@media(max-width:560px){body{padding:20px 12px 28px}.card{padding:14px 14px 12px}.lede{font-size:16px}
.chart text{font-size:15px}.tiles{grid-template-columns:1fr 1fr}.tiles>div{padding:10px 12px}.big{font-size:19px}
th,td{padding-left:10px}}
"""
