/** The tool `search_files`: finds lines that contain a string or match a linear-time regular expression (RE2). */
import { setImmediate } from 'node:timers/promises';
import type { RE2JS } from 're2js';
import { defineReadTool, type ToolboxTool, type ToolOutput } from './define-tool.js';
import { defineInput, type InferInput } from './input-schema.js';
import { readContents } from './read-contents.js';
import type { OpenPath, Roots } from './roots.js';
import { isBinary, splitLines, truncate } from './text.js';
import { toolError } from './tool-error.js';
import { type WalkEntry, walkDirectory } from './walk-directory.js';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
const MAX_FILES = 20_000;
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_TOTAL_BYTES = 32 * 1024 * 1024;
/** The maximum length of the part of a line that is matched with RE2. Longer lines are usually generated. */
const MAX_LINE_CHARS = 2000;
/** The maximum number of instructions of a compiled pattern: the time of a match is proportional to it. */
const MAX_PATTERN_SIZE = 500;
const MAX_SEARCH_MS = 15_000;
/** How long the search may block the event loop. */
const YIELD_INTERVAL_MS = 20;
const MAX_DEPTH = 50;
const MAX_MATCH_CHARS = 240;
const MAX_OUTPUT_CHARS = 60_000;

const inputSchema = defineInput({
  query: { type: 'string', min: 1, max: 500, description: 'The text to find, within one line.' },
  pattern: { type: 'boolean', optional: true, description: 'query is a regular expression (RE2 syntax).' },
  ignoreCase: { type: 'boolean', optional: true, description: 'Ignores the case of letters.' },
  path: { type: 'string', optional: true, description: 'A directory or a file. Default: the first root.' },
  hidden: { type: 'boolean', optional: true, description: 'Includes files and directories that begin with a dot.' },
  limit: {
    type: 'integer',
    optional: true,
    min: 1,
    max: MAX_LIMIT,
    description: `The maximum number of lines. Default: ${DEFAULT_LIMIT}.`,
  },
});

type SearchFilesInput = InferInput<typeof inputSchema>;

/** Returns an offset for the excerpt of a matching line, or -1 if the line does not match. */
type LineMatcher = (line: string) => number;

/** Creates the tool `search_files`. */
export function searchFilesTool(roots: Roots): ToolboxTool<SearchFilesInput> {
  return defineReadTool({
    name: 'search_files',
    description:
      'Finds lines in text files; returns "path:line: text", in the order of list_files. ' +
      'node_modules and binary or very large files are skipped; links are not followed.',
    inputSchema,
    execute: async (query, { abortSignal, confinement }) =>
      new Search(roots.confinedTo(confinement), query, await createLineMatcher(query), abortSignal).run(),
  });
}

class Search {
  private readonly matches: string[] = [];
  private readonly skipNotes: string[] = [];
  private readonly matchLine: LineMatcher;
  private fileCount = 0;
  private byteCount = 0;
  private outputChars = 0;
  private skippedCount = 0;
  private sliceStartedAt = performance.now();
  private readonly deadlineAt = this.sliceStartedAt + MAX_SEARCH_MS;
  private readonly roots: Roots;
  private readonly query: SearchFilesInput;
  private readonly signal: AbortSignal | undefined;

  constructor(roots: Roots, query: SearchFilesInput, matchLine: LineMatcher, signal: AbortSignal | undefined) {
    this.roots = roots;
    this.query = query;
    this.matchLine = matchLine;
    this.signal = signal;
  }

  async run(): Promise<ToolOutput> {
    const { path = '.', hidden = false } = this.query;
    const { signal } = this;
    const visit = (entry: WalkEntry): Promise<boolean> | boolean => entry.kind !== 'file' || this.visit(entry);
    const onSkip = (skippedPath: string, reason: string): void => this.skip(`${skippedPath} ${reason}`);
    const walkOptions = { depth: MAX_DEPTH, includeHidden: hidden, signal, visit, onSkip };
    const isComplete = await this.roots.open(path, 'either', (opened) =>
      opened.stats.isDirectory() ? walkDirectory(this.roots, opened, walkOptions) : this.searchFile(opened),
    );
    const notes = [
      ...(isComplete
        ? []
        : [`It stopped after ${this.matches.length} lines in ${this.fileCount} files: narrow the query or the path`]),
      ...(this.skippedCount === 0 ? [] : [`${this.skippedCount} skipped: ${this.skipNotes.join(', ')}`]),
    ];
    const output = { matches: this.matches, files: this.fileCount };
    return notes.length === 0 ? output : { ...output, note: truncate(`${notes.join('. ')}.`, 2000) };
  }

  private async visit({ parent, name, path }: WalkEntry): Promise<boolean> {
    try {
      return await this.roots.openWithin(parent, name, 'file', (opened) => this.searchFile(opened));
    } catch {
      this.signal?.throwIfAborted();
      this.skip(`${path} cannot be read`);
      return true;
    }
  }

  /** Searches one file. Returns false if the search must stop. */
  private async searchFile(opened: OpenPath): Promise<boolean> {
    const path = this.roots.displayPath(opened.realPath);
    const { bytes, isTruncated } = await readContents(opened, MAX_FILE_BYTES);
    if (isTruncated || isBinary(bytes)) {
      this.skip(`${path} is ${isTruncated ? 'too large' : 'not text'}`);
      return true;
    }
    this.fileCount += 1;
    this.byteCount += bytes.length;
    for (const [index, line] of splitLines(new TextDecoder().decode(bytes)).entries()) {
      if (performance.now() - this.sliceStartedAt > YIELD_INTERVAL_MS && (await this.yieldAndCheckDeadline()))
        return false;
      const offset = this.matchLine(line);
      if (offset !== -1 && !this.addMatch(`${path}:${index + 1}: ${excerptAround(line, offset)}`)) return false;
    }
    return this.fileCount < MAX_FILES && this.byteCount < MAX_TOTAL_BYTES;
  }

  /** Yields to the event loop. Returns true if the search has exceeded its time limit. */
  private async yieldAndCheckDeadline(): Promise<boolean> {
    await setImmediate();
    this.signal?.throwIfAborted();
    this.sliceStartedAt = performance.now();
    return this.sliceStartedAt > this.deadlineAt;
  }

  private addMatch(match: string): boolean {
    this.outputChars += match.length;
    if (this.matches.length >= (this.query.limit ?? DEFAULT_LIMIT) || this.outputChars > MAX_OUTPUT_CHARS) return false;
    this.matches.push(match);
    return true;
  }

  private skip(note: string): void {
    this.skippedCount += 1;
    if (this.skipNotes.length < 5) this.skipNotes.push(note);
  }
}

async function createLineMatcher({
  query,
  pattern = false,
  ignoreCase = false,
}: SearchFilesInput): Promise<LineMatcher> {
  if (!pattern && !ignoreCase) return (line) => line.indexOf(query);
  // Imported on first use, because it slows down the start.
  const { RE2JS } = await import('re2js');
  const program = compilePattern(RE2JS, pattern ? query : RE2JS.quote(query), ignoreCase);
  return (line) => {
    const text = line.length > MAX_LINE_CHARS ? line.slice(0, MAX_LINE_CHARS) : line;
    if (!program.test(text)) return -1;
    const matcher = program.matcher(text);
    // A short line is returned completely, so the offset of its match is not needed.
    return text.length > MAX_MATCH_CHARS && matcher.find() ? matcher.start() : 0;
  };
}

function compilePattern(engine: typeof RE2JS, source: string, ignoreCase: boolean): RE2JS {
  let program: RE2JS;
  try {
    program = engine.compile(source, ignoreCase ? engine.CASE_INSENSITIVE : 0);
  } catch (error) {
    const reason = error instanceof Error ? truncate(error.message, 300) : 'it cannot be parsed';
    throw toolError(`The pattern cannot be used: ${reason}. RE2 does not support lookaround and backreferences.`);
  }
  if (program.programSize() <= MAX_PATTERN_SIZE) return program;
  throw toolError(
    'The pattern cannot be used: it would take too long. Use smaller repetition counts, or search for a plain text.',
  );
}

/** Returns a short line without surrounding whitespace; of a longer line, the part around a match. */
function excerptAround(line: string, offset: number): string {
  const text = line.trim();
  if (text.length <= MAX_MATCH_CHARS) return text;
  const start = Math.max(0, offset - MAX_MATCH_CHARS / 2);
  return `${start > 0 ? '…' : ''}${truncate(line.slice(start).replace(/^[\udc00-\udfff]/, ''), MAX_MATCH_CHARS)}`;
}
