// Turns that are run by the command line, `rondo run`, and interrupted at random moments; then they are finished.

import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** @typedef {import('rondo/protocol').Entry} Entry */
/**
 * @typedef {object} CommandTurn
 * @property {string} name also its session and its key
 * @property {boolean} finished
 * @property {{ at: number, stderr: string }[]} denials when a command ended that said nothing was recorded
 * @property {{ turnId: string, output: unknown }[]} ends what was reported as its end
 */
/** @typedef {{ readonly code: number | null, readonly stdout: string, readonly stderr: string }} Ended */

const bin = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));
/** A command includes the start of its process; what counts against the limit is the rest. */
const LONGEST_MS = 13_000;
const MOST_TRIES = 20;
const NOTHING_RECORDED = /before anything was recorded|nothing (?:was|has been|is) recorded|not recorded/i;

/** Reports to the sink as a tool. @param {string} socket */
const script = (socket) => `#!${process.execPath}
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
const { turn, step } = JSON.parse(readFileSync(0, 'utf8'));
const effect = { id: 0, turn, step, safety: 'keyed', key: process.env.RONDO_IDEMPOTENCY_KEY };
const socket = connect(${JSON.stringify(socket)});
socket.write(JSON.stringify({ hello: process.pid }) + '\\n' + JSON.stringify(effect) + '\\n');
let said = '';
socket.setEncoding('utf8').on('data', (piece) => {
  said += piece;
  const reply = said.split('\\n')[1];
  if (said.split('\\n').length < 3) return;
  process.stdout.write(JSON.stringify({ done: JSON.parse(reply).value }));
  socket.end();
});
`;

/** @param {string} id @param {object} tool */
const toolOf = (id, tool) => ({ id, name: id, version: '1.0.0', kind: 'tool', ...ends, tool });
const ends = { inputSchema: { type: 'object' }, outputSchema: { type: 'object' } };
const wait = { loopId: 'wait', inputMapping: { ms: '$.input.ms' } };
const report = { loopId: 'report', inputMapping: { turn: '$.input.turn', step: '$.input.step' } };
const delivery = {
  id: 'delivery',
  name: 'A report between two waits',
  version: '1.0.0',
  kind: 'composite',
  ...ends,
  composite: { steps: [wait, report, wait] },
};

export class Commands {
  /** @type {CommandTurn[]} */
  turns = [];
  interrupts = 0;
  #fleet;
  #random;
  #project;

  /** @param {import('./fleet.mjs').Fleet} fleet @param {() => number} random */
  constructor(fleet, random) {
    this.#fleet = fleet;
    this.#random = random;
    this.#project = join(fleet.options.folder, 'project');
    const loops = join(this.#project, 'loops');
    mkdirSync(loops, { recursive: true });
    const definitions = {
      delivery,
      report: toolOf('report', { implementation: 'exec:report', safety: 'keyed' }),
      wait: toolOf('wait', { implementation: 'builtin:wait', safety: 'idempotent' }),
    };
    for (const [name, definition] of Object.entries(definitions))
      writeFileSync(join(loops, `${name}.json`), JSON.stringify(definition));
    writeFileSync(join(loops, 'report'), script(fleet.options.socket));
    writeFileSync(join(loops, 'package.json'), '{"type":"module"}');
    chmodSync(join(loops, 'report'), 0o755);
  }

  /** Runs one turn after another. @param {() => boolean} goesOn */
  async lane(goesOn) {
    const { record } = this.#fleet.options;
    while (goesOn() && !record.spent) {
      /** @type {CommandTurn} */
      const turn = { name: `command-${this.turns.length + 1}`, finished: false, denials: [], ends: [] };
      this.turns.push(turn);
      let ended = await this.#run(turn, this.#runArgs(turn), 150 + this.#random() * 1100);
      for (let tries = 0; !turn.finished && tries < MOST_TRIES; tries++) {
        const [, hint] = /rondo resume (\S+)/.exec(ended.stderr) ?? [];
        const args = tries === 0 && hint !== undefined ? ['resume', hint] : this.#runArgs(turn);
        ended = await this.#run(turn, args);
      }
      if (!turn.finished) record.violation(`${turn.name} was not finished by ${MOST_TRIES} commands: ${ended.stderr}`);
      await sleep(this.#random() * 1000);
    }
  }

  /** @param {CommandTurn} turn */
  #runArgs({ name }) {
    const input = JSON.stringify({ turn: name, step: 'report', ms: 60 });
    return ['run', 'delivery', '--session', name, '--key', name, '--input', input];
  }

  /** Runs a command, and interrupts it after a while if asked. @param {CommandTurn} turn @param {readonly string[]} args @param {number} [after] */
  async #run(turn, args, after) {
    const { file, record } = this.#fleet.options;
    const at = Date.now();
    const all = [bin, ...args, '--data', dirname(file), '--json'];
    const env = { ...process.env, RONDO_TRUST: this.#project };
    const child = spawn(process.execPath, all, { cwd: this.#project, env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#fleet.pids.add(child.pid ?? 0);
    const interrupt = () => {
      if (child.kill(this.#random() < 0.5 ? 'SIGINT' : 'SIGTERM')) this.interrupts += 1;
    };
    const timer = after === undefined ? undefined : setTimeout(interrupt, after);
    const hang = setTimeout(() => {
      record.violation(`rondo ${args[0]} of ${turn.name} in ${child.pid} took longer than ${LONGEST_MS} ms`);
      child.kill('SIGKILL');
    }, LONGEST_MS);
    const ended = await endOf(child);
    clearTimeout(timer);
    clearTimeout(hang);
    record.log('command line', { pid: child.pid, args, took: Date.now() - at, ...ended });
    this.#note(turn, ended);
    return ended;
  }

  /** @param {CommandTurn} turn @param {Ended} ended */
  #note(turn, { code, stdout, stderr }) {
    if (NOTHING_RECORDED.test(stderr)) turn.denials.push({ at: Date.now(), stderr });
    if (code !== 0) return;
    const { status, turnId, output } = JSON.parse(stdout);
    if (status !== 'ok') return;
    turn.finished = true;
    turn.ends.push({ turnId, output });
  }
}

/** @param {import('node:child_process').ChildProcessByStdio<null, import('node:stream').Readable, import('node:stream').Readable>} child @returns {Promise<Ended>} */
function endOf(child) {
  const said = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (piece) => {
    said.stdout += piece;
  });
  child.stderr.setEncoding('utf8').on('data', (piece) => {
    said.stderr += piece;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...said })));
}

/**
 * What was reported wrongly of a turn, or done twice.
 * @param {CommandTurn} turn @param {readonly Entry[]} entries @param {import('./sink.mjs').Sink} sink
 * @returns {string[]}
 */
export function commandFaults(turn, entries, sink) {
  const wrong = [];
  const begun = entries.find(({ type, key }) => type === 'call.started' && !key.includes('/'));
  for (const { at, stderr } of turn.denials)
    if (begun !== undefined && begun.at <= at) wrong.push(`${turn.name} is recorded, and a command said: ${stderr}`);
  const end = entries.find(({ type, key }) => type === 'call.completed' && key === begun?.key);
  if (end === undefined) wrong.push(`${turn.name} did not end well`);
  for (const { turnId } of turn.ends)
    if (turnId !== begun?.key) wrong.push(`${turn.name} was reported as ${turnId}; it is ${begun?.key}`);
  const keys = new Set(sink.seen({ turn: turn.name, step: 'report' }).map(({ key }) => key));
  if (keys.size !== 1) wrong.push(`${turn.name} reported under ${keys.size} idempotency keys`);
  return wrong;
}
