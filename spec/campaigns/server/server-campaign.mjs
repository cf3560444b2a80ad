// What the campaigns with servers share: the directory, the sink, the log, and the end of a campaign.

import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from 'rondo/testing';
import { CampaignLog } from '../campaign-log.mjs';
import { Sink } from '../sink.mjs';
import { checkServerTurns } from './journal-check.mjs';
import { ServerProcess } from './server-process.mjs';

/** @typedef {import('./journal-check.mjs').AcceptedTurn} AcceptedTurn */

const PROGRESS_MS = 5000;

/** One campaign. */
export class ServerCampaign {
  /** The turns that a server accepted. @type {AcceptedTurn[]} */
  turns = [];
  /** The servers that run. @type {Set<ServerProcess>} */
  servers = new Set();
  /** @type {import('./server-process.mjs').Shared} */
  shared;
  #name;
  #seed;
  #progress;

  /** @param {string} name @param {number} seed @param {() => object} progress Returns the figures of a line of progress. */
  constructor(name, seed, progress) {
    this.#name = name;
    this.#seed = seed;
    this.random = seededRandom(seed);
    this.folder = mkdtempSync(join(tmpdir(), `rondo-${name}-`));
    this.log = new CampaignLog(join(this.folder, 'log.jsonl'));
    this.sink = new Sink(seededRandom(seed + 1));
    const stderr = openSync(join(this.folder, 'stderr.log'), 'a');
    this.shared = { data: join(this.folder, 'data'), sink: join(this.folder, 'sink.sock'), stderr };
    const print = () =>
      console.log(`${name}: ${JSON.stringify({ ...progress(), violations: this.log.violations.length })}`);
    this.#progress = setInterval(print, PROGRESS_MS);
    console.log(`${name}: seed ${seed}`);
  }

  /** Starts the sink. */
  async open() {
    await this.sink.listen(this.shared.sink);
  }

  /** Returns a random integer from 0 to `limit` - 1. @param {number} limit */
  below(limit) {
    return Math.floor(this.random() * limit);
  }

  /** Starts a server and waits until it accepts requests. */
  async startServer() {
    const server = new ServerProcess(this.shared);
    this.log.write('start', { pid: server.pid });
    server.exited.then(() => {
      this.servers.delete(server);
      this.log.write('exit', { pid: server.pid });
      if (!server.isEnding) this.log.violation(`server ${server.pid} exited by itself`);
      for (const problem of server.problems) this.log.violation(`server ${server.pid}: ${JSON.stringify(problem)}`);
    });
    await server.ready;
    this.servers.add(server);
    return server;
  }

  /** Ends a server and resolves with the time of its exit. @param {ServerProcess} server @param {'SIGTERM' | 'SIGKILL'} signal */
  async endServer(server, signal) {
    this.log.write('end', { pid: server.pid, signal });
    this.servers.delete(server);
    return server.end(signal);
  }

  /** Ends the servers and checks the journal and the sink. Returns the figures of the turns. */
  async checkTurns() {
    const { sink, turns, log, shared } = this;
    await this.endServers();
    const { violations, delays } = await checkServerTurns({ data: shared.data, sink, turns });
    for (const text of violations) log.violation(text);
    const repeatedEffects = sink.count - sink.effects.size;
    return { turns: turns.length, effects: sink.effects.size, repeatedEffects, longestDelayMs: Math.max(...delays) };
  }

  /** Ends the servers that still run. */
  async endServers() {
    await Promise.all([...this.servers].map((server) => this.endServer(server, 'SIGTERM')));
  }

  /** Prints the summary and exits. @param {object} figures @param {boolean} keep True to keep the directory. */
  finish(figures, keep) {
    const { violations } = this.log;
    clearInterval(this.#progress);
    this.sink.close();
    const hasFailed = violations.length > 0;
    if (hasFailed || keep) console.log(`The data directory and the log: ${this.folder}`);
    else rmSync(this.folder, { recursive: true });
    console.log(JSON.stringify({ mode: this.#name, seed: this.#seed, ...figures, violations }));
    process.exit(hasFailed ? 1 : 0);
  }
}
