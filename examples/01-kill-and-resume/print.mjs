// Terminal output of the demo: aligned columns, and color on a terminal only.

const isColored = process.stdout.isTTY === true && process.stderr.isTTY === true && !process.env.NO_COLOR;

/** @type {(code: number) => (text: string) => string} */
const paint = (code) => (text) => (isColored && text !== '' ? `\x1b[${code}m${text}\x1b[0m` : text);

export const bold = paint(1);
export const dim = paint(2);
export const red = paint(31);
export const green = paint(32);
export const yellow = paint(33);

/** @param {string} [text] */
export function line(text = '') {
  console.log(text === '' ? '' : `  ${text}`);
}

/** @param {string} title @param {string} [subtitle] */
export function heading(title, subtitle = '') {
  console.log(`\n${bold(title)}${subtitle && `  ${dim(subtitle)}`}`);
}

/** Prints an effect and its state. @param {string} kind @param {string} name @param {string} state */
export function step(kind, name, state) {
  line(`${dim(kind.padEnd(9))}${name.padEnd(16)}${state}`);
}

/**
 * Returns one row of a table, with numbers aligned right.
 * @param {readonly (string | number)[]} cells
 * @param {readonly number[]} widths
 */
export function row(cells, widths) {
  const padded = cells.map((cell, index) => {
    const width = widths[index] ?? 0;
    return typeof cell === 'number' ? String(cell).padStart(width) : cell.padEnd(width);
  });
  return padded.join('  ').trimEnd();
}

/** @param {string} title @param {number} width */
export function rule(title, width) {
  line(yellow(`── ${title} ${'─'.repeat(Math.max(0, width - title.length - 4))}`));
}
