// Injects a fault into the current process: counts its operations on files, sockets and the database, and at one of
// them kills, stops or delays the process, or throws an error.

import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

/** The file operations that count as steps. */
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
/** The steps that have side effects. Injected errors (`fail …`, `sqlite …`) affect only these. */
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

/** A fault and the step at which it is injected. */
class FaultPlan {
  steps = 0;
  faultStep = Number.POSITIVE_INFINITY;
  /** @param {{ how: string, ms?: number }} fault */
  constructor(fault) {
    this.fault = fault;
  }

  /** Restarts the count of steps and injects the fault at step `at`. @param {number} at */
  arm(at) {
    this.steps = 0;
    this.faultStep = at;
  }

  /** Counts a step, and injects the fault if it is due. @param {string} name @param {unknown} detail */
  step(name, detail) {
    const { how, ms = 1000 } = this.fault;
    if (/^(fail|sqlite)/.test(how) && !CHANGES.has(name)) return;
    if (how.startsWith('sqlite') && name !== 'exec' && name !== 'run') return;
    this.steps += 1;
    if (this.steps !== this.faultStep) return;
    // A synchronous write, so that the report is complete before the process is killed.
    fs.writeSync(1, `${JSON.stringify({ at: `${name} ${String(detail).slice(0, 80)}` })}\n`);
    if (how === 'kill') process.kill(process.pid, 'SIGKILL');
    if (how === 'stop') process.kill(process.pid, 'SIGSTOP');
    if (how === 'pause') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    if (how === 'exit') process.exit(7);
    if (how.startsWith('fail')) throw Object.assign(new Error(`${how.slice(5)}: injected`), { code: how.slice(5) });
    if (how.startsWith('sqlite')) throw Object.assign(new Error('injected'), { errcode: Number(how.slice(7)) });
  }
}

/**
 * Replaces a function of a module by one that counts a step.
 * @param {FaultPlan} plan
 * @param {any} module
 * @param {string} name
 */
function instrument(plan, module, name) {
  const original = module[name];
  module[name] = (...args) => {
    if (typeof args[0] !== 'string' || !/\/(?:proc|dev)\/|\.m?js$|node_modules/.test(args[0])) plan.step(name, args[0]);
    return original(...args);
  };
}

/** Installs the fault plan of the environment variable ATTACK_PLAN; returns undefined if the variable is not set. */
export function installFaultPlan() {
  const { ATTACK_PLAN: planText } = process.env;
  if (planText === undefined) return undefined;
  const plan = new FaultPlan(JSON.parse(planText));
  for (const name of STEPS) instrument(plan, fs, name);
  const { listen } = net.Server.prototype;
  net.Server.prototype.listen = function (...args) {
    plan.step('listen', args[0]?.path);
    return listen.apply(this, args);
  };
  syncBuiltinESMExports();
  return plan;
}

/**
 * Returns a driver whose statements count as steps.
 * @param {(path: string) => any} openDriver
 * @param {FaultPlan} plan
 */
export function instrumentDriver(openDriver, plan) {
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
