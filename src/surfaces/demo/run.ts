/**
 * The demo: a typed RAG loop runs in a process of its own, that process is killed while a model answers, and another
 * one goes on where it stopped. Everything shown comes from the command line itself; what is claimed at the end is read
 * from the journal, and the demo fails if it does not hold.
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
/** How long the models take to answer, so that there is something to see and to kill. */
const MODEL_DELAYS_MS = [700, 2500];

interface DemoProject {
  readonly dataDirectory: string;
  readonly flags: readonly string[];
}

type PrintLine = (line: string) => void;

/** Runs the demo; 0 if all that it claims held. */
export async function runDemo(say: PrintLine, color: boolean): Promise<number> {
  const example = findExampleAbove(dirname(fileURLToPath(import.meta.url)));
  const folder = mkdtempSync(join(tmpdir(), 'rondo-demo-'));
  try {
    return await runScenario(prepareProject(folder, example), createColors(color), say);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runScenario(place: DemoProject, { bold, dim, red, green }: Colors, say: PrintLine): Promise<number> {
  say(bold('A typed RAG loop, killed in the middle and resumed'));
  say(dim('question → extract-keywords (model) → retrieve-context (tool) → synthesize-answer (model)'));
  say(dim('Every step is checked on the way in and out, and journaled before the next one starts.\n'));

  const input = JSON.stringify({ question: QUESTION });
  const first = startVerb(['run', 'rag-answer', '--input', input, '--session', SESSION_ID, '--watch', ...place.flags]);
  say(`${bold('1')}  Process ${first.pid} runs it: ${dim(QUESTION)}\n`);
  await waitForModelRequests(place, 2, first.exitCode);
  first.kill();
  await first.exitCode;
  say(red(`\n   kill -9 ${first.pid}, while the last model was still answering\n`));

  const [left] = (await readVerbOutput(['runs', '--json', ...place.flags], parseRuns)) ?? [];
  say(`${bold('2')}  What is left: turn ${left?.turnId}, ${left?.status}\n`);

  const second = startVerb(['resume', left?.turnId ?? '', '--watch', ...place.flags]);
  say(`${bold('3')}  Process ${second.pid} goes on with it\n`);
  const code = await second.exitCode;

  say(`\n${bold('4')}  Held against the journal`);
  const claims = await checkClaims(place, left, code);
  for (const [claim, holds] of claims) say(`   ${holds ? green('✓') : red('✗')} ${claim}`);
  return claims.every(([, holds]) => holds) ? 0 : 1;
}

/** What the demo claims, and whether it is so. */
async function checkClaims(
  place: DemoProject,
  left: TurnStatus | undefined,
  code: number,
): Promise<[string, boolean][]> {
  const turn = left?.turnId ?? '';
  const events = (await readVerbOutput(['trace', turn, '--json', ...place.flags], parseTraceEvents)) ?? [];
  const replay = await readVerbOutput(
    ['replay', turn, '--json', ...place.flags],
    (text) => JSON.parse(text) as { matches: boolean },
  );
  const counted = (type: string): number => events.filter((event) => event.type === type).length;
  return [
    ['the killed process left a turn that was not lost', left?.status === 'interrupted'],
    ['the second process finished it', code === 0],
    ['each of the three steps was started once', counted('child.started') === 3],
    ['the tool was invoked once', counted('call.tool.invoked') === 1],
    ['no answer of a model that was recorded was asked for again', counted('call.backend.responded') === 2],
    ['a replay performs nothing and comes to the same end', replay?.matches === true],
  ];
}

/** The example of the package that this file is part of, wherever in it that lies. */
function findExampleAbove(folder: string): string {
  const example = join(folder, EXAMPLE_PATH);
  if (existsSync(example)) return example;
  if (dirname(folder) === folder) throw new Error(`The demo needs ${EXAMPLE_PATH}, which was not installed.`);
  return findExampleAbove(dirname(folder));
}

/** The example, with models that take their time. */
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

/** Waits until the turn has asked so many models. */
async function waitForModelRequests({ flags }: DemoProject, times: number, ended: Promise<number>): Promise<void> {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!over) {
    const events = (await readVerbOutput(['trace', SESSION_ID, '--json', ...flags], parseTraceEvents)) ?? [];
    if (events.filter(({ type }) => type === 'call.backend.requested').length >= times) return setTimeout(400);
    await setTimeout(40);
  }
}

const parseRuns = (text: string): readonly TurnStatus[] => (JSON.parse(text) as { runs: TurnStatus[] }).runs;

const parseTraceEvents = (text: string): readonly TraceEvent[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as TraceEvent);
