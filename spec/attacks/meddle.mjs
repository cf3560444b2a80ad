// Counts what a process does to files, sockets and the database, and does something to itself at one of these steps.

import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

const STEPS = [
  ...[
    'openSync',
    'closeSync',
    'writeSync',
    'writeFileSync',
    'readFileSync',
    'renameSync',
    'rmSync',
    'mkdirSync',
    'chmodSync',
  ],
  ...['fchmodSync', 'lstatSync', 'statSync', 'fstatSync', 'fsyncSync', 'ftruncateSync', 'realpathSync', 'existsSync'],
];
/** Steps that change something; with `errno` only these fail. */
const CHANGES = new Set([
  ...[
    'openSync',
    'writeSync',
    'writeFileSync',
    'renameSync',
    'rmSync',
    'mkdirSync',
    'chmodSync',
    'fchmodSync',
    'fsyncSync',
  ],
  ...['exec', 'run', 'listen'],
]);

class Plan {
  steps = 0;
  armed = Number.POSITIVE_INFINITY;
  /** @param {{ how: string, ms?: number }} what @param {(report: unknown) => void} tell */
  constructor(what, tell) {
    this.what = what;
    this.tell = tell;
  }

  /** The step so many from now is the one. @param {number} at */
  arm(at) {
    this.steps = 0;
    this.armed = at;
  }

  /** @param {string} name @param {unknown} detail */
  step(name, detail) {
    const { how, ms = 1000 } = this.what;
    if (/^(fail|sqlite)/.test(how) && !CHANGES.has(name)) return;
    if (how.startsWith('sqlite') && name !== 'exec' && name !== 'run') return;
    this.steps += 1;
    if (this.steps !== this.armed) return;
    // Written at once: a process that is killed here still has said where.
    fs.writeSync(1, `${JSON.stringify({ at: `${name} ${String(detail).slice(0, 80)}` })}\n`);
    if (how === 'kill') process.kill(process.pid, 'SIGKILL');
    if (how === 'stop') process.kill(process.pid, 'SIGSTOP');
    if (how === 'pause') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    if (how === 'exit') process.exit(7);
    if (how.startsWith('fail')) throw Object.assign(new Error(`${how.slice(5)}: injected`), { code: how.slice(5) });
    if (how.startsWith('sqlite')) throw Object.assign(new Error('injected'), { errcode: Number(how.slice(7)) });
  }
}

/** @param {Plan} plan @param {any} module @param {string} name */
function watch(plan, module, name) {
  const before = module[name];
  module[name] = (...args) => {
    if (typeof args[0] !== 'string' || !/\/(?:proc|dev)\/|\.m?js$|node_modules/.test(args[0])) plan.step(name, args[0]);
    return before(...args);
  };
}

/** Makes the plan that the environment asks for. @param {(report: unknown) => void} tell */
export function setUp(tell) {
  const { ATTACK_PLAN: given } = process.env;
  if (given === undefined) return undefined;
  const plan = new Plan(JSON.parse(given), tell);
  for (const name of STEPS) watch(plan, fs, name);
  const { listen } = net.Server.prototype;
  net.Server.prototype.listen = function (...args) {
    plan.step('listen', args[0]?.path);
    return listen.apply(this, args);
  };
  syncBuiltinESMExports();
  return plan;
}

/** A driver whose statements are steps. @param {(path: string) => any} openDriver @param {Plan} plan */
export function driverOf(openDriver, plan) {
  return (path) => {
    const raw = openDriver(path);
    return {
      exec: (sql) => {
        plan.step('exec', sql);
        raw.exec(sql);
      },
      prepare: (sql) => {
        const statement = raw.prepare(sql);
        return {
          run: (...params) => {
            plan.step('run', sql);
            return statement.run(...params);
          },
          all: (...params) => {
            plan.step('all', sql);
            return statement.all(...params);
          },
        };
      },
      close: () => {
        plan.step('closing', path);
        raw.close();
      },
    };
  };
}
