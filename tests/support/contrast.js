// Texts of a page whose contrast is below what WCAG 2 (level AA) asks for, as a list; the body of a function.
const parse = (text) => { const found = text.match(/[\d.]+/g).map(Number); return [...found.slice(0, 3), found[3] ?? 1]; };
const light = (color) => { const [r, g, b] = color.map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3]));
const behind = (node) => { const stack = []; for (let at = node; at; at = at.parentElement) { const c = parse(getComputedStyle(at).backgroundColor); stack.push(c); if (c[3] === 1) break; }
  return stack.reverse().reduce((under, top) => over(top, under), [255, 255, 255]); };
const bad = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim(), node = walker.currentNode.parentElement;
  if (!text || !node.checkVisibility({ opacityProperty: true }) || node.closest('.sr, noscript, option, :disabled, .skip')) continue;
  const style = getComputedStyle(node), size = parseFloat(style.fontSize);
  const ink = node instanceof SVGElement ? style.fill : style.color;
  const under = behind(node), one = light(over(parse(ink), under)), two = light(under);
  const ratio = (Math.max(one, two) + .05) / (Math.min(one, two) + .05);
  const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  if (ratio < (large ? 3 : 4.5)) bad.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
}
return bad;
