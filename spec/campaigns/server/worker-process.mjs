// `rondo worker` as a process of a campaign: it is killed and started again at an interval.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eachLine } from '../json-lines.mjs';

const BIN = fileURLToPath(new URL('../../../lib/surfaces/cli/main.js', import.meta.url));
/** Keeps a worker running and kills it at an interval. */
export class KilledWorker {
  kills = 0;
  /** The number of results that the workers printed. */
  results = 0;
  /** The worker processes that ended by themselves. @type {string[]} */
  failures = [];
  #isStopped = false;

  /**
   * The worker is killed `everyMs` after the start of its process, or after it has opened the store.
   * @param {import('./server-process.mjs').Shared} shared @param {string} project
   * @param {{ readonly everyMs: number, readonly from: 'start' | 'work' }} interval
   */
  constructor({ data, sink, stderr }, project, interval) {
    const env = { ...process.env, CAMPAIGN_SINK: sink };
    const args = [BIN, 'worker', '--json', '--data', data, '--trust', join(project, 'loops')];
    const start = () => {
      const child = spawn(process.execPath, args, { cwd: project, env });
      child.stderr.on('data', (chunk) => writeSync(stderr, chunk));
      return child;
    };
    this.stopped = this.#run(start, interval);
  }

  /** Kills the worker a last time. */
  async stop() {
    this.#isStopped = true;
    await this.stopped;
  }

  /**
   * @param {() => import('node:child_process').ChildProcessWithoutNullStreams} start
   * @param {{ readonly everyMs: number, readonly from: 'start' | 'work' }} interval
   */
  async #run(start, { everyMs, from }) {
    while (!this.#isStopped) {
      const child = start();
      const countResult = () => {
        this.results += 1;
      };
      eachLine(child.stdout, countResult);
      const exited = once(child, 'exit');
      const kill = () => void child.kill('SIGKILL');
      process.once('exit', kill);
      // The first line on stderr says that the worker is at work.
      const begun = from === 'start' ? Promise.resolve() : once(child.stderr, 'data');
      const ended = await Promise.race([exited, begun.then(() => sleep(everyMs))]);
      if (ended !== undefined) this.failures.push(`the worker ${child.pid} ended by itself with ${ended[0]}`);
      child.kill('SIGKILL');
      await exited;
      process.removeListener('exit', kill);
      this.kills += 1;
    }
  }
}
