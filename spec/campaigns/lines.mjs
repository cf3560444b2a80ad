// JSON lines from a stream.

/**
 * Calls a function for each whole line; what a process that was killed left unfinished is dropped.
 * @param {import('node:stream').Readable} stream @param {(line: string) => void} hear
 */
export function eachLine(stream, hear) {
  let rest = '';
  stream.setEncoding('utf8').on('data', (/** @type {string} */ piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) hear(line);
  });
}
