// Turns that `rondo run` processes run. The campaign interrupts each at a random time and finishes it with further
// commands.

import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** @typedef {import('rondo/protocol').Entry} Entry */
/** @typedef {import('node:stream').Readable} Readable */
/**
 * @typedef {object} CommandTurn
 * @property {string} name The name of the turn, also its session and its key.
 * @property {boolean} finished
 * @property {{ at: number, stderr: string }[]} denials The exits of commands that printed that nothing was recorded.
 * @property {{ turnId: string, output: unknown }[]} ends The reported ends.
 */
/** @typedef {{ readonly code: number | null, readonly stdout: string, readonly stderr: string }} CommandResult */

const bin = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));
/** The time limit of a command: 10 seconds, and 3 for the start of its process. */
const MAX_MS = 13_000;
/** The number of further commands in which a turn must finish. */
const MAX_TRIES = 20;
const NOTHING_RECORDED = /before anything was recorded|nothing (?:was|has been|is) recorded|not recorded/i;

/** Returns an exec: tool that reports an effect to the sink. @param {string} socket */
const reportProgram = (socket) => `#!${process.execPath}
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
const { turn, step } = JSON.parse(readFileSync(0, 'utf8'));
const effect = { id: 0, turn, step, safety: 'keyed', key: process.env.RONDO_IDEMPOTENCY_KEY };
const socket = connect(${JSON.stringify(socket)});
socket.write(JSON.stringify({ hello: process.pid }) + '\\n' + JSON.stringify(effect) + '\\n');
let received = '';
socket.setEncoding('utf8').on('data', (chunk) => {
  received += chunk;
  const reply = received.split('\\n')[1];
  if (received.split('\\n').length < 3) return;
  process.stdout.write(JSON.stringify({ done: JSON.parse(reply).value }));
  socket.end();
});
`;

/** Returns the definition of a tool. @param {string} id @param {object} tool */
const toolOf = (id, tool) => ({ id, name: id, version: '1.0.0', kind: 'tool', ...schemas, tool });
const schemas = { inputSchema: { type: 'object' }, outputSchema: { type: 'object' } };
const wait = { loopId: 'wait', inputMapping: { ms: '$.input.ms' } };
const report = { loopId: 'report', inputMapping: { turn: '$.input.turn', step: '$.input.step' } };
const delivery = {
  id: 'delivery',
  name: 'A report between two waits',
  version: '1.0.0',
  kind: 'composite',
  ...schemas,
  composite: { steps: [wait, report, wait] },
};

/** Runs and interrupts commands on the store of the campaign. */
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
    writeFileSync(join(loops, 'report'), reportProgram(fleet.options.socket));
    writeFileSync(join(loops, 'package.json'), '{"type":"module"}');
    chmodSync(join(loops, 'report'), 0o755);
  }

  /** Runs one turn after another as long as `shouldContinue` returns true. @param {() => boolean} shouldContinue */
  async lane(shouldContinue) {
    const { log } = this.#fleet.options;
    while (shouldContinue() && !log.isFull) {
      /** @type {CommandTurn} */
      const turn = { name: `command-${this.turns.length + 1}`, finished: false, denials: [], ends: [] };
      this.turns.push(turn);
      let result = await this.#run(turn, this.#runArgs(turn), 150 + this.#random() * 1100);
      for (let tries = 0; !turn.finished && tries < MAX_TRIES; tries++) {
        const [, hint] = /rondo resume (\S+)/.exec(result.stderr) ?? [];
        const args = tries === 0 && hint !== undefined ? ['resume', hint] : this.#runArgs(turn);
        result = await this.#run(turn, args);
      }
      if (!turn.finished) log.violation(`${turn.name} was not finished by ${MAX_TRIES} commands: ${result.stderr}`);
      await sleep(this.#random() * 1000);
    }
  }

  /** Returns the arguments that run a turn. @param {CommandTurn} turn */
  #runArgs({ name }) {
    const input = JSON.stringify({ turn: name, step: 'report', ms: 60 });
    return ['run', 'delivery', '--session', name, '--key', name, '--input', input];
  }

  /**
   * Runs a command and interrupts it after `interruptMs` milliseconds, if that is given.
   * @param {CommandTurn} turn @param {readonly string[]} args @param {number} [interruptMs]
   */
  async #run(turn, args, interruptMs) {
    const { file, log } = this.#fleet.options;
    const at = Date.now();
    const argv = [bin, ...args, '--data', dirname(file), '--json'];
    const env = { ...process.env, RONDO_TRUST: this.#project };
    const child = spawn(process.execPath, argv, { cwd: this.#project, env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#fleet.pids.add(child.pid ?? 0);
    const interrupt = () => {
      if (child.kill(this.#random() < 0.5 ? 'SIGINT' : 'SIGTERM')) this.interrupts += 1;
    };
    const timer = interruptMs === undefined ? undefined : setTimeout(interrupt, interruptMs);
    const limit = setTimeout(() => {
      log.violation(`rondo ${args[0]} of ${turn.name} in ${child.pid} took longer than ${MAX_MS} ms`);
      child.kill('SIGKILL');
    }, MAX_MS);
    const result = await resultOf(child);
    clearTimeout(timer);
    clearTimeout(limit);
    log.write('command line', { pid: child.pid, args, ms: Date.now() - at, ...result });
    this.#recordResult(turn, result);
    return result;
  }

  /**
   * Records the end of a turn, or that a command printed that nothing was recorded.
   * @param {CommandTurn} turn @param {CommandResult} result
   */
  #recordResult(turn, { code, stdout, stderr }) {
    if (NOTHING_RECORDED.test(stderr)) turn.denials.push({ at: Date.now(), stderr });
    if (code !== 0) return;
    const { status, turnId, output } = JSON.parse(stdout);
    if (status !== 'ok') return;
    turn.finished = true;
    turn.ends.push({ turnId, output });
  }
}

/**
 * Waits until a command exits.
 * @param {import('node:child_process').ChildProcessByStdio<null, Readable, Readable>} child
 * @returns {Promise<CommandResult>}
 */
function resultOf(child) {
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    output.stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    output.stderr += chunk;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...output })));
}

/**
 * Checks the reports and the effect of a turn, and returns a description of each violation.
 * @param {CommandTurn} turn @param {readonly Entry[]} entries @param {import('./sink.mjs').Sink} sink
 * @returns {string[]}
 */
export function checkCommandTurn(turn, entries, sink) {
  const violations = [];
  const start = entries.find(({ type, key }) => type === 'call.started' && !key.includes('/'));
  for (const { at, stderr } of turn.denials)
    if (start !== undefined && start.at <= at)
      violations.push(`${turn.name} is recorded, and a command printed: ${stderr}`);
  const end = entries.find(({ type, key }) => type === 'call.completed' && key === start?.key);
  if (end === undefined) violations.push(`${turn.name} did not complete`);
  for (const { turnId } of turn.ends)
    if (turnId !== start?.key) violations.push(`${turn.name} was reported as ${turnId}; it is ${start?.key}`);
  const keys = new Set(sink.attemptsOf({ turn: turn.name, step: 'report' }).map(({ key }) => key));
  if (keys.size !== 1) violations.push(`${turn.name} reported under ${keys.size} idempotency keys`);
  return violations;
}
