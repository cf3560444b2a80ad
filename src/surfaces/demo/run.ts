/**
 * The demo: a child process runs a typed RAG loop and is killed during a model call; a second process resumes the turn.
 * All output comes from the command line itself. The claims at the end are checked against the journal, and the demo
 * fails if one does not hold.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { TraceEvent, TurnStatus } from '../../protocol/trace.js';
import { type Colors, createColors } from '../cli/terminal-text.js';
import { readVerbOutput, startVerb } from './process.js';

const EXAMPLE_PATH = 'examples/03-rag/loops';
const QUESTION = 'How often do I water tomatoes?';
const SESSION_ID = 'demo';
/** The latencies of the scripted model replies, in order, so that there is time to kill the process. */
const MODEL_DELAYS_MS = [700, 2500];

interface DemoProject {
  readonly dataDirectory: string;
  readonly flags: readonly string[];
}

type PrintLine = (line: string) => void;

/** Runs the demo. Returns the exit code: 0 if all claims hold. */
export async function runDemo(print: PrintLine, color: boolean): Promise<number> {
  const example = findExampleAbove(dirname(fileURLToPath(import.meta.url)));
  const folder = mkdtempSync(join(tmpdir(), 'rondo-demo-'));
  try {
    return await runScenario(prepareProject(folder, example), createColors(color), print);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runScenario(project: DemoProject, { bold, dim, red, green }: Colors, print: PrintLine): Promise<number> {
  print(bold('A typed RAG loop, killed in the middle and resumed'));
  print(dim('question → extract-keywords (model) → retrieve-context (tool) → synthesize-answer (model)'));
  print(dim('The input and output of every step are validated, and journaled before the next step starts.\n'));

  const input = JSON.stringify({ question: QUESTION });
  const first = startVerb([
    'run',
    'rag-answer',
    '--input',
    input,
    '--session',
    SESSION_ID,
    '--watch',
    ...project.flags,
  ]);
  print(`${bold('1')}  Process ${first.pid} runs it: ${dim(QUESTION)}\n`);
  await waitForModelRequests(project, 2, first.exitCode);
  first.kill();
  await first.exitCode;
  print(red(`\n   kill -9 ${first.pid}, during the last model call\n`));

  const [interrupted] = (await readVerbOutput(['runs', '--json', ...project.flags], parseRuns)) ?? [];
  print(`${bold('2')}  In the journal: turn ${interrupted?.turnId}, ${interrupted?.status}\n`);

  const second = startVerb(['resume', interrupted?.turnId ?? '', '--watch', ...project.flags]);
  print(`${bold('3')}  Process ${second.pid} resumes it\n`);
  const exitCode = await second.exitCode;

  print(`\n${bold('4')}  Checked against the journal`);
  const claims = await checkClaims(project, interrupted, exitCode);
  for (const [claim, holds] of claims) print(`   ${holds ? green('✓') : red('✗')} ${claim}`);
  return claims.every(([, holds]) => holds) ? 0 : 1;
}

/** Returns the claims of the demo, each with true if it holds. */
async function checkClaims(
  project: DemoProject,
  interrupted: TurnStatus | undefined,
  exitCode: number,
): Promise<[string, boolean][]> {
  const turnId = interrupted?.turnId ?? '';
  const events = (await readVerbOutput(['trace', turnId, '--json', ...project.flags], parseTraceEvents)) ?? [];
  const replay = await readVerbOutput(
    ['replay', turnId, '--json', ...project.flags],
    (text) => JSON.parse(text) as { matches: boolean },
  );
  const countOf = (type: string): number => events.filter((event) => event.type === type).length;
  return [
    ['the turn of the killed process was not lost', interrupted?.status === 'interrupted'],
    ['the second process finished it', exitCode === 0],
    ['each of the three steps was started once', countOf('child.started') === 3],
    ['the tool was invoked once', countOf('call.tool.invoked') === 1],
    ['no recorded model answer was requested again', countOf('call.backend.responded') === 2],
    ['a replay performs no effect and returns the same result', replay?.matches === true],
  ];
}

/** Returns the directory of the example in this folder or the nearest one above it. Throws if there is none. */
function findExampleAbove(folder: string): string {
  const example = join(folder, EXAMPLE_PATH);
  if (existsSync(example)) return example;
  if (dirname(folder) === folder) throw new Error(`The demo needs ${EXAMPLE_PATH}, which is not installed.`);
  return findExampleAbove(dirname(folder));
}

/** Copies the example and gives its scripted models latencies. */
function prepareProject(folder: string, example: string): DemoProject {
  const loops = join(folder, 'loops');
  cpSync(example, loops, { recursive: true });
  const script = join(loops, 'garden.script.json');
  const steps = JSON.parse(readFileSync(script, 'utf8')) as object[];
  writeFileSync(
    script,
    JSON.stringify(steps.map((step, index) => ({ ...step, delayMs: MODEL_DELAYS_MS[index] ?? 0 }))),
  );
  const data = join(folder, 'data');
  return { dataDirectory: data, flags: ['--data', data, '--loops', loops, '--trust', loops] };
}

/** Waits until the turn has requested `count` model calls, or the process has exited. */
async function waitForModelRequests({ flags }: DemoProject, count: number, exit: Promise<number>): Promise<void> {
  let hasExited = false;
  void exit.then(() => {
    hasExited = true;
  });
  while (!hasExited) {
    const events = (await readVerbOutput(['trace', SESSION_ID, '--json', ...flags], parseTraceEvents)) ?? [];
    if (events.filter(({ type }) => type === 'call.backend.requested').length >= count) return setTimeout(400);
    await setTimeout(40);
  }
}

const parseRuns = (text: string): readonly TurnStatus[] => (JSON.parse(text) as { runs: TurnStatus[] }).runs;

const parseTraceEvents = (text: string): readonly TraceEvent[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as TraceEvent);
