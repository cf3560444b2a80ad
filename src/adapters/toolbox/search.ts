/** `search_files`: lines that hold a text or match a linear-time pattern (RE2). */
import { setImmediate } from 'node:timers/promises';
import type { RE2JS } from 're2js';
import { type Answer, type BoxTool, readingTool } from './box.js';
import { type Fitting, inputOf } from './input.js';
import { contentsOf } from './read.js';
import { refusal } from './refusal.js';
import type { Opened, Roots } from './roots.js';
import { cut, isBinary, linesOf } from './text.js';
import { type Found, walk } from './walk.js';

const LIMIT = 100;
const MOST = 1000;
/** Files that are opened, bytes of one of them, and bytes of all. */
const FILES = 20_000;
const FILE_BYTES = 1024 * 1024;
const BYTES = 32 * 1024 * 1024;
/** What a pattern is tried on: the rest of a longer line is not code that anybody wrote. */
const LINE = 2000;
/** Linear is not yet fast: a pattern takes time with the length of the text times this. */
const PROGRAM = 500;
/** How long it may take in all, and how long others wait meanwhile. */
const TIME = 15_000;
const SHARE = 20;
const DEPTH = 50;
const SHOWN = 240;
const SIZE = 60_000;

const inputSchema = inputOf({
  query: { type: 'string', min: 1, max: 500, description: 'The text to find, within one line.' },
  pattern: { type: 'boolean', optional: true, description: 'query is a regular expression (RE2 syntax).' },
  ignoreCase: { type: 'boolean', optional: true, description: 'Letters match in either case.' },
  path: { type: 'string', optional: true, description: 'A directory or a file; the first root unless told.' },
  hidden: { type: 'boolean', optional: true, description: 'Also in files and directories that begin with a dot.' },
  limit: { type: 'integer', optional: true, min: 1, max: MOST, description: `How many lines; ${LIMIT} unless told.` },
});

type Query = Fitting<typeof inputSchema>;

/** Tells where in a line something is found, or -1. */
type Finder = (line: string) => number;

export function searchFiles(roots: Roots): BoxTool<Query> {
  return readingTool({
    name: 'search_files',
    description:
      'Finds lines in text files; answers "path:line: text", in the order of list_files. ' +
      'node_modules and binary or very large files are passed over; links are not followed.',
    inputSchema,
    execute: async (query, { abortSignal }) => new Search(roots, query, await finder(query), abortSignal).run(),
  });
}

class Search {
  private readonly matches: string[] = [];
  private readonly passed: string[] = [];
  private readonly finds: Finder;
  private files = 0;
  private bytes = 0;
  private size = 0;
  private passedOver = 0;
  private since = performance.now();
  private readonly until = this.since + TIME;
  private readonly roots: Roots;
  private readonly query: Query;
  private readonly signal: AbortSignal | undefined;

  constructor(roots: Roots, query: Query, finds: Finder, signal: AbortSignal | undefined) {
    this.roots = roots;
    this.query = query;
    this.finds = finds;
    this.signal = signal;
  }

  async run(): Promise<Answer> {
    const { path = '.', hidden = false } = this.query;
    const { signal } = this;
    const visit = (found: Found): Promise<boolean> | boolean => found.kind !== 'file' || this.visit(found);
    const skip = (at: string, reason: string): void => this.skip(`${at} ${reason}`);
    const all = { depth: DEPTH, hidden, signal, visit, skip };
    const whole = await this.roots.open(path, 'either', (opened) =>
      opened.stats.isDirectory() ? walk(this.roots, opened, all) : this.look(opened),
    );
    const notes = [
      ...(whole
        ? []
        : [`It stopped after ${this.matches.length} lines in ${this.files} files: narrow the query or the path`]),
      ...(this.passedOver === 0 ? [] : [`${this.passedOver} passed over, as ${this.passed.join(', ')}`]),
    ];
    const answer = { matches: this.matches, files: this.files };
    return notes.length === 0 ? answer : { ...answer, note: cut(`${notes.join('. ')}.`, 2000) };
  }

  private async visit({ parent, name, path }: Found): Promise<boolean> {
    try {
      return await this.roots.within(parent, name, 'file', (opened) => this.look(opened));
    } catch {
      this.signal?.throwIfAborted();
      this.skip(`${path} cannot be read`);
      return true;
    }
  }

  /** Searches one file; false when that is enough. */
  private async look(opened: Opened): Promise<boolean> {
    const shown = this.roots.shown(opened.real);
    const { bytes, more } = await contentsOf(opened, FILE_BYTES);
    if (more || isBinary(bytes)) {
      this.skip(`${shown} is ${more ? 'too large' : 'not text'}`);
      return true;
    }
    this.files += 1;
    this.bytes += bytes.length;
    for (const [index, line] of linesOf(new TextDecoder().decode(bytes)).entries()) {
      if (performance.now() - this.since > SHARE && (await this.late())) return false;
      const at = this.finds(line);
      if (at !== -1 && !this.add(`${shown}:${index + 1}: ${around(line, at)}`)) return false;
    }
    return this.files < FILES && this.bytes < BYTES;
  }

  /** Lets others run; whether the time is up. */
  private async late(): Promise<boolean> {
    await setImmediate();
    this.signal?.throwIfAborted();
    this.since = performance.now();
    return this.since > this.until;
  }

  private add(match: string): boolean {
    this.size += match.length;
    if (this.matches.length >= (this.query.limit ?? LIMIT) || this.size > SIZE) return false;
    this.matches.push(match);
    return true;
  }

  private skip(what: string): void {
    this.passedOver += 1;
    if (this.passed.length < 5) this.passed.push(what);
  }
}

async function finder({ query, pattern = false, ignoreCase = false }: Query): Promise<Finder> {
  if (!pattern && !ignoreCase) return (line) => line.indexOf(query);
  // Loaded with the first search that needs it.
  const { RE2JS } = await import('re2js');
  const program = compiled(RE2JS, pattern ? query : RE2JS.quote(query), ignoreCase);
  return (line) => {
    const text = line.length > LINE ? line.slice(0, LINE) : line;
    if (!program.test(text)) return -1;
    const matcher = program.matcher(text);
    return text.length > SHOWN && matcher.find() ? matcher.start() : 0;
  };
}

function compiled(engine: typeof RE2JS, source: string, ignoreCase: boolean): RE2JS {
  let program: RE2JS;
  try {
    program = engine.compile(source, ignoreCase ? engine.CASE_INSENSITIVE : 0);
  } catch (error) {
    const reason = error instanceof Error ? cut(error.message, 300) : 'it cannot be read';
    throw refusal(`The pattern cannot be used: ${reason}. Lookaround and backreferences are not known to RE2.`);
  }
  if (program.programSize() <= PROGRAM) return program;
  throw refusal('The pattern cannot be used: it would take too long. Count to less in it, or search for a plain text.');
}

/** The part of a line that holds what was found. */
function around(line: string, at: number): string {
  const text = line.trim();
  if (text.length <= SHOWN) return text;
  const from = Math.max(0, at - SHOWN / 2);
  return `${from > 0 ? '…' : ''}${cut(line.slice(from).replace(/^[\udc00-\udfff]/, ''), SHOWN)}`;
}
