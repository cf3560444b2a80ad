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
import { type Paint, paint } from '../cli/paint.js';
import { ask, start } from './process.js';

const EXAMPLE = 'examples/03-rag/loops';
const QUESTION = 'How often do I water tomatoes?';
const SESSION = 'demo';
/** How long the models take to answer, so that there is something to see and to kill. */
const THINKING = [700, 2500];

interface Place {
  readonly data: string;
  readonly settings: readonly string[];
}

type Say = (line: string) => void;

/** Runs the demo; 0 if all that it claims held. */
export async function demo(say: Say, color: boolean): Promise<number> {
  const example = exampleAbove(dirname(fileURLToPath(import.meta.url)));
  const folder = mkdtempSync(join(tmpdir(), 'rondo-demo-'));
  try {
    return await play(stage(folder, example), paint(color), say);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function play(place: Place, { bold, dim, red, green }: Paint, say: Say): Promise<number> {
  say(bold('A typed RAG loop, killed in the middle and resumed'));
  say(dim('question → extract-keywords (model) → retrieve-context (tool) → synthesize-answer (model)'));
  say(dim('Every step is checked on the way in and out, and journaled before the next one starts.\n'));

  const input = JSON.stringify({ question: QUESTION });
  const first = start(['run', 'rag-answer', '--input', input, '--session', SESSION, '--watch', ...place.settings]);
  say(`${bold('1')}  Process ${first.pid} runs it: ${dim(QUESTION)}\n`);
  await untilAsked(place, 2, first.ended);
  first.kill();
  await first.ended;
  say(red(`\n   kill -9 ${first.pid}, while the last model was still answering\n`));

  const [left] = (await ask(['runs', '--json', ...place.settings], runsOf)) ?? [];
  say(`${bold('2')}  What is left: turn ${left?.turnId}, ${left?.status}\n`);

  const second = start(['resume', left?.turnId ?? '', '--watch', ...place.settings]);
  say(`${bold('3')}  Process ${second.pid} goes on with it\n`);
  const code = await second.ended;

  say(`\n${bold('4')}  Held against the journal`);
  const claims = await judged(place, left, code);
  for (const [claim, holds] of claims) say(`   ${holds ? green('✓') : red('✗')} ${claim}`);
  return claims.every(([, holds]) => holds) ? 0 : 1;
}

/** What the demo claims, and whether it is so. */
async function judged(place: Place, left: TurnStatus | undefined, code: number): Promise<[string, boolean][]> {
  const turn = left?.turnId ?? '';
  const events = (await ask(['trace', turn, '--json', ...place.settings], linesOf)) ?? [];
  const replay = await ask(
    ['replay', turn, '--json', ...place.settings],
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
function exampleAbove(folder: string): string {
  const example = join(folder, EXAMPLE);
  if (existsSync(example)) return example;
  if (dirname(folder) === folder) throw new Error(`The demo needs ${EXAMPLE}, which was not installed.`);
  return exampleAbove(dirname(folder));
}

/** The example, with models that take their time. */
function stage(folder: string, example: string): Place {
  const loops = join(folder, 'loops');
  cpSync(example, loops, { recursive: true });
  const script = join(loops, 'garden.script.json');
  const steps = JSON.parse(readFileSync(script, 'utf8')) as object[];
  writeFileSync(script, JSON.stringify(steps.map((step, index) => ({ ...step, delayMs: THINKING[index] ?? 0 }))));
  const data = join(folder, 'data');
  return { data, settings: ['--data', data, '--loops', loops, '--trust', loops] };
}

/** Waits until the turn has asked so many models. */
async function untilAsked({ settings }: Place, times: number, ended: Promise<number>): Promise<void> {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!over) {
    const events = (await ask(['trace', SESSION, '--json', ...settings], linesOf)) ?? [];
    if (events.filter(({ type }) => type === 'call.backend.requested').length >= times) return setTimeout(400);
    await setTimeout(40);
  }
}

const runsOf = (text: string): readonly TurnStatus[] => (JSON.parse(text) as { runs: TurnStatus[] }).runs;

const linesOf = (text: string): readonly TraceEvent[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as TraceEvent);
