/** The processes that may hold leases, as recorded in the database. A new owner waits for those that are alive. */
import { type Driver, integerColumn, readInteger, readText, textColumn } from './driver.js';
import { type ProcessId, processStateOf, thisProcess } from './owner/process.js';

/** Returns the recorded processes, by client id. When the database is opened, they are those of the previous owner. */
export function readRecordedClients(driver: Driver): ReadonlyMap<string, ProcessId> {
  const columns = `${textColumn('id')}, ${integerColumn('pid')}, ${textColumn('start')}`;
  const rows = driver.prepare(`SELECT ${columns} FROM clients`).all();
  return new Map(rows.map((row) => [readText(row.id), { pid: readInteger(row.pid), start: readText(row.start) }]));
}

/**
 * True if another recorded process is running. It waits for the next owner. A stopped process and one in another
 * container do not count.
 */
export function hasOtherLivingClient(driver: Driver): boolean {
  const self = thisProcess();
  const others = [...readRecordedClients(driver).values()].filter(({ pid }) => pid !== self.pid);
  return others.some((client) => client.pid > 0 && processStateOf(client) === 'running');
}
