/** Parses TOML, and reports syntax errors with their positions. */
import { createRequire } from 'node:module';
import { DocumentReadError, describeError } from './document-read-error.js';

const MAX_DEPTH = 200;
/** Used to load the TOML parser on first use, because most directories contain no TOML. */
const requireModule = createRequire(import.meta.url);

/** Parses a TOML text. Throws DocumentReadError if it is invalid, with the position of a syntax error. */
export function parseToml(text: string): unknown {
  const { parse, TomlError } = requireModule('smol-toml') as typeof import('smol-toml');
  try {
    return parse(text, { maxDepth: MAX_DEPTH });
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw new DocumentReadError(describeError(thrown));
    const reason = thrown.message.split('\n', 1)[0] ?? '';
    throw new DocumentReadError(reason.replace('Invalid TOML document: ', ''), {
      line: thrown.line,
      column: thrown.column,
    });
  }
}
