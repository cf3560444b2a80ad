/** The processes that hold leases, as the database knows them: the next owner waits for those that live. */
import { type Driver, integerColumn, readInteger, readText, textColumn } from './driver.js';
import { type ProcessId, processStateOf, thisProcess } from './owner/process.js';

/** The processes that held leases under the last owner, by their ids. */
export function readRecordedClients(driver: Driver): ReadonlyMap<string, ProcessId> {
  const columns = `${textColumn('id')}, ${integerColumn('pid')}, ${textColumn('start')}`;
  const rows = driver.prepare(`SELECT ${columns} FROM peers`).all();
  return new Map(rows.map((row) => [readText(row.id), { pid: readInteger(row.pid), start: readText(row.start) }]));
}

/** True if another process that worked under the last owner lives: it has used the store until now, and waits for the next one. */
export function hasOtherLivingClient(driver: Driver): boolean {
  const self = thisProcess();
  const others = [...readRecordedClients(driver).values()].filter(({ pid }) => pid !== self.pid);
  return others.some((peer) => peer.pid > 0 && processStateOf(peer) === 'running');
}
