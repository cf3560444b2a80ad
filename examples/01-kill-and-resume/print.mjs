// What the demo looks like in a terminal: colour on a terminal only, and columns that line up.

const coloured = process.stdout.isTTY === true && process.stderr.isTTY === true && !process.env.NO_COLOR;

/** @type {(code: number) => (text: string) => string} */
const paint = (code) => (text) => (coloured && text !== '' ? `\x1b[${code}m${text}\x1b[0m` : text);

export const bold = paint(1);
export const dim = paint(2);
export const red = paint(31);
export const green = paint(32);
export const yellow = paint(33);

/** @param {string} [text] */
export function line(text = '') {
  console.log(text === '' ? '' : `  ${text}`);
}

/** @param {string} title @param {string} [more] */
export function heading(title, more = '') {
  console.log(`\n${bold(title)}${more && `  ${dim(more)}`}`);
}

/** One thing that is asked of the world. @param {string} kind @param {string} name @param {string} news */
export function step(kind, name, news) {
  line(`${dim(kind.padEnd(9))}${name.padEnd(16)}${news}`);
}

/** One row of a table; numbers stand on the right. @param {readonly (string | number)[]} cells @param {readonly number[]} widths */
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
