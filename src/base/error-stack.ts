/**
 * Stacks of errors as bounded text whose first frame is in the user's code. Frames of this package and of Node are left
 * out. What was thrown is untrusted: its properties may throw when they are read.
 */

const MAX_STACK_CHARS = 4000;
const MAX_FRAMES = 20;
const MAX_CAUSES = 5;
const MAX_HEADLINE_CHARS = 300;

/** What the text depends on apart from the error itself. */
interface StackOptions {
  /** True for an outcome of a loop. Its message may be redacted, so the messages of its causes are left out. */
  isOutcome(error: object): boolean;
  /** Returns the text of an error that was journaled; undefined for any other error. */
  recordedStack(error: object): string | undefined;
  /**
   * True to leave out the messages of all errors.
   * @default false
   */
  readonly withoutMessages?: boolean;
}

/** The directory of this package; undefined if it was bundled into a program. */
const packageDirectory = pathOf(import.meta.url).match(
  /^(.*\/)(?:(?:src|dist)\/base\/error-stack\.[jt]s|lib\/parts\/base-[\w-]+\.js)$/,
)?.[1];

function pathOf(location: string): string {
  return location.startsWith('file://') ? location.slice('file://'.length) : location;
}

/** Returns the stack of an error and of its causes; undefined if no frame is in the user's code. */
export function stackTextOf(thrown: unknown, options: StackOptions): string | undefined {
  const lines: string[] = [];
  let hasFrames = false;
  let isBelowOutcome = options.withoutMessages === true;
  let error = thrown;
  for (let depth = 0; depth < MAX_CAUSES && typeof error === 'object' && error !== null; depth++) {
    const prefix = lines.length === 0 ? '' : 'Caused by: ';
    const recorded = options.recordedStack(error);
    if (recorded !== undefined) {
      lines.push(prefix + recorded);
      hasFrames = true;
      break;
    }
    const isOutcome = options.isOutcome(error);
    const cause = readProperty(error, 'cause');
    const frames = userFramesOf(error, isOutcome);
    const isRelay = isOutcome && readProperty(cause, 'message') === readProperty(error, 'message');
    if (!isRelay && (frames.length > 0 || depth === 0))
      lines.push(prefix + headlineOf(error, isBelowOutcome), ...frames);
    hasFrames ||= frames.length > 0;
    isBelowOutcome ||= isOutcome && !isRelay;
    error = cause;
  }
  return hasFrames ? lines.join('\n').slice(0, MAX_STACK_CHARS) : undefined;
}

function headlineOf(error: object, withoutMessage: boolean): string {
  const name = textOf(readProperty(error, 'name')) || 'Error';
  const message = withoutMessage ? '' : textOf(readProperty(error, 'message'));
  const headline = message === '' ? name : `${name}: ${message}`;
  return headline.slice(0, MAX_HEADLINE_CHARS).replace(/\s+/g, ' ');
}

/** Returns the frames in the user's code. An outcome that this package created has none. */
function userFramesOf(error: object, isOutcome: boolean): readonly string[] {
  const stack = textOf(readProperty(error, 'stack')).slice(0, 10 * MAX_STACK_CHARS);
  const frames: string[] = [];
  for (const line of stack.split('\n')) {
    const location = locationOf(line);
    if (location === undefined) continue;
    if (isOutcome && frames.length === 0 && isOwn(location)) return [];
    if (location.startsWith('node:') || isOwn(location)) continue;
    frames.push(`    ${line.trim().replace(/\bfile:\/\//, '')}`);
    if (frames.length === MAX_FRAMES) break;
  }
  // The packages that call the user's code, such as a server or a test runner, say nothing about the error.
  return frames.slice(
    0,
    1 +
      Math.max(
        0,
        frames.findLastIndex((frame) => !isInstalled(frame)),
      ),
  );
}

function isInstalled(location: string): boolean {
  return location.includes('/node_modules/');
}

/** Returns the location in a line of a stack, such as `/app/shop.ts:12:9`; undefined for any other line. */
function locationOf(line: string): string | undefined {
  const [, inParentheses, bare] = line.match(/^\s+at (?:.*\((.*:\d+)\)|(?:async )?(\S.*:\d+))$/) ?? [];
  const location = inParentheses ?? bare;
  return location === undefined ? undefined : pathOf(location);
}

function isOwn(path: string): boolean {
  if (path.includes('/node_modules/rondo/')) return true;
  if (packageDirectory === undefined || !path.startsWith(packageDirectory)) return false;
  // The tests of this package lie next to its code.
  return /^(?:src|dist|lib)\//.test(path.slice(packageDirectory.length)) && !path.includes('.test.');
}

/**
 * Returns the first location of a stack text that is outside of installed packages, such as `/app/shop.ts:12:9`;
 * undefined if there is none.
 */
export function firstLocationOf(stack: string): string | undefined {
  const locations = stack.split('\n').flatMap((line) => locationOf(line) ?? []);
  return locations.find((location) => !isInstalled(location)) ?? locations[0];
}

function readProperty(from: unknown, name: string): unknown {
  try {
    return (from as { readonly [name: string]: unknown } | null | undefined)?.[name];
  } catch {
    return undefined;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
