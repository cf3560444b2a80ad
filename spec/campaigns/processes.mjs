// A campaign with several processes on one store: it starts, resumes, answers and cancels turns while it kills workers
// at random. See README.md.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededRandom } from 'rondo/testing';
import { CampaignLog, quantile } from './campaign-log.mjs';
import { Chaos, MODES } from './chaos.mjs';
import { Client } from './client.mjs';
import { Commands } from './commands.mjs';
import { Fleet } from './fleet.mjs';
import { checkJournal } from './journal-checks.mjs';
import { Sink } from './sink.mjs';

const PROGRESS_MS = 5000;
/** The time limit for the open turns after the last kill. */
const FINISH_MS = 90_000;

/** Parses the command line options. */
function parseSettings() {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '500' },
      mode: { type: 'string', default: 'plain' },
      seed: { type: 'string', default: '1' },
      workers: { type: 'string', default: '3' },
      lanes: { type: 'string', default: '8' },
      keep: { type: 'boolean', default: false },
    },
  });
  const { mode, keep } = values;
  if (MODES[mode] === undefined) throw new TypeError(`The modes are ${Object.keys(MODES).join(', ')}; not ${mode}.`);
  const [kills, seed, workers, lanes] = [values.kills, values.seed, values.workers, values.lanes].map(Number);
  return { mode, keep, kills: kills ?? 0, seed: seed ?? 0, workers: workers ?? 0, lanes: lanes ?? 0 };
}

/**
 * Runs the campaign and checks the journal.
 * @param {ReturnType<typeof parseSettings>} options @param {string} folder @param {CampaignLog} log
 */
async function runCampaign({ mode, kills, seed, workers: size, lanes }, folder, log) {
  const file = join(folder, 'data', 'journal.db');
  const socket = join(folder, 'sink.sock');
  const sink = new Sink(seededRandom(seed + 1));
  await sink.listen(socket);
  const pausesWorkers = /^(blocked|stopped|mixed)$/.test(mode);
  const copiesFiles = mode === 'copying' || mode === 'mixed';
  const options = { folder, file, socket, size, copiesFiles, pausesWorkers, random: seededRandom(seed + 2), log, sink };
  const fleet = new Fleet(options);
  const client = new Client(fleet, seededRandom(seed + 3));
  const chaos = new Chaos(fleet, seededRandom(seed + 4), mode);
  const commands = new Commands(fleet, seededRandom(seed + 5));
  const progress = setInterval(() => {
    const open = client.turns.filter(({ finished }) => !finished).length;
    const { violations } = log;
    console.log(
      `${mode}: ${chaos.kills} kills (${chaos.ownerKills} of the owner), ${client.turns.length} turns (${open} open), ` +
        `${sink.count} effects, ${fleet.ready.length} workers ready, ${violations.length} violations`,
    );
  }, PROGRESS_MS);
  fleet.fill();
  let isRunning = true;
  const lanePromises = [
    ...Array.from({ length: lanes }, () => client.lane(() => isRunning)),
    ...(mode === 'interrupted' || mode === 'mixed' ? [commands.lane(() => isRunning)] : []),
  ];
  await chaos.run(kills);
  isRunning = false;
  const timeout = sleep(FINISH_MS, 'timeout', { ref: false });
  if ((await Promise.race([Promise.all(lanePromises), timeout])) === 'timeout')
    log.violation(`turns did not end within ${FINISH_MS} ms`);
  await fleet.close();
  clearInterval(progress);
  for (const text of await checkJournal(file, { turns: client.turns, commands: commands.turns, sink }))
    log.violation(text);
  sink.close();
  return { chaos, commands, turns: client.turns, effects: sink.count };
}

/** Counts the acknowledged operations. @param {readonly import('./client.mjs').Turn[]} turns */
function countsOf(turns) {
  /** @param {(turn: import('./client.mjs').Turn) => readonly { outcome: { kind: string } }[]} of */
  const acknowledged = (of) => turns.flatMap(of).filter(({ outcome }) => outcome.kind === 'ok').length;
  return {
    cancels: acknowledged(({ cancels }) => cancels),
    answers: acknowledged(({ answers }) => answers),
    resolved: acknowledged(({ resolutions }) => resolutions),
  };
}

const options = parseSettings();
const folder = mkdtempSync(join(tmpdir(), 'rondo-campaign-'));
const log = new CampaignLog(join(folder, 'log.jsonl'));
const { chaos, commands, turns, effects } = await runCampaign(options, folder, log);
const { kills, ownerKills, interrupts, blocks, stops, takeovers } = chaos;
const { violations, faults, longestOperationMs, longestOperation } = log;
const failed = violations.length > 0;
if (failed || options.keep) console.log(`The data directory and the log of all commands and reports: ${folder}`);
else rmSync(folder, { recursive: true });
const takeoverMs = {
  p50: quantile(takeovers, 0.5),
  p99: quantile(takeovers, 0.99),
  max: quantile(takeovers, 1),
};
const { mode, seed } = options;
const commandLine = { turns: commands.turns.length, interrupts: commands.interrupts };
const counts = {
  kills,
  ownerKills,
  interrupts,
  blocks,
  stops,
  turns: turns.length,
  effects,
  ...countsOf(turns),
  faults,
};
console.log(
  JSON.stringify({ mode, seed, ...counts, commandLine, takeoverMs, longestOperationMs, longestOperation, violations }),
);
process.exit(failed ? 1 : 0);
