// A campaign over several processes on one store: turns are started, resumed, answered and cancelled while workers are
// killed at random. See README.md.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededRandom } from 'rondo/testing';
import { Chaos, MODES } from './chaos.mjs';
import { Commands } from './commands.mjs';
import { Fleet } from './fleet.mjs';
import { judge } from './judge.mjs';
import { CampaignRecord, quantile } from './record.mjs';
import { Sink } from './sink.mjs';
import { Client } from './turns.mjs';

const PROGRESS_MS = 5000;
/** How long turns may take to end once nothing is killed any more. */
const FINISH_MS = 90_000;

function settings() {
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

/** @param {ReturnType<typeof settings>} options @param {string} folder @param {CampaignRecord} record */
async function campaign({ mode, kills, seed, workers: size, lanes }, folder, record) {
  const file = join(folder, 'data', 'journal.db');
  const socket = join(folder, 'sink.sock');
  const sink = new Sink(seededRandom(seed + 1));
  await sink.listen(socket);
  const pausing = /^(blocked|stopped|mixed)$/.test(mode);
  const copying = mode === 'copying' || mode === 'mixed';
  const options = { folder, file, socket, size, copying, pausing, random: seededRandom(seed + 2), record, sink };
  const fleet = new Fleet(options);
  const client = new Client(fleet, seededRandom(seed + 3));
  const chaos = new Chaos(fleet, seededRandom(seed + 4), mode);
  const commands = new Commands(fleet, seededRandom(seed + 5));
  const progress = setInterval(() => {
    const open = client.turns.filter(({ finished }) => !finished).length;
    const { violations } = record;
    console.log(
      `${mode}: ${chaos.kills} kills (${chaos.ownerKills} of the owner), ${client.turns.length} turns (${open} open), ` +
        `${sink.count} effects, ${fleet.ready.length} workers ready, ${violations.length} violations`,
    );
  }, PROGRESS_MS);
  fleet.fill();
  let going = true;
  const all = [
    ...Array.from({ length: lanes }, () => client.lane(() => going)),
    ...(mode === 'interrupted' || mode === 'mixed' ? [commands.lane(() => going)] : []),
  ];
  await chaos.run(kills);
  going = false;
  const late = sleep(FINISH_MS, 'late', { ref: false });
  if ((await Promise.race([Promise.all(all), late])) === 'late')
    record.violation(`turns did not end within ${FINISH_MS} ms`);
  await fleet.close();
  clearInterval(progress);
  for (const text of await judge(file, { turns: client.turns, commands: commands.turns, sink })) record.violation(text);
  sink.close();
  return { chaos, commands, turns: client.turns, effects: sink.count };
}

/** @param {readonly import('./turns.mjs').Turn[]} turns */
function countsOf(turns) {
  /** @param {(turn: import('./turns.mjs').Turn) => readonly { outcome: { kind: string } }[]} of */
  const acknowledged = (of) => turns.flatMap(of).filter(({ outcome }) => outcome.kind === 'ok').length;
  return {
    cancels: acknowledged(({ cancels }) => cancels),
    answers: acknowledged(({ answers }) => answers),
    resolved: acknowledged(({ decisions }) => decisions),
  };
}

const options = settings();
const folder = mkdtempSync(join(tmpdir(), 'rondo-campaign-'));
const record = new CampaignRecord(join(folder, 'log.jsonl'));
const { chaos, commands, turns, effects } = await campaign(options, folder, record);
const { kills, ownerKills, interrupts, blocks, stops, takeovers } = chaos;
const { violations, faults, longestOperationMs, longestOperation } = record;
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
