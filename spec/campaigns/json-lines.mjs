// Reads a stream line by line.

/**
 * Calls a function for each complete line. An incomplete last line, for example of a killed process, is dropped.
 * @param {import('node:stream').Readable} stream @param {(line: string) => void} onLine
 */
export function eachLine(stream, onLine) {
  let incomplete = '';
  stream.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => {
    const lines = (incomplete + chunk).split('\n');
    incomplete = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
}
