/**
 * Which store a process has joined. Another store can be put in its place while the process is between two owners, and
 * must not get what belongs to the first one.
 */
import { Fault } from '../../base/errors.js';
import { identityAt } from './files.js';
import { toReadFault } from './sqlite-faults.js';

/** The store at the path of a database, which stays the same for a process that has joined it. */
export class StoreIdentity {
  private readonly database: string;
  /** Identity of the database when the process joined; empty before that. */
  private joined = '';

  constructor(database: string) {
    this.database = database;
  }

  /** Notes which store it is. Call it when the process has joined the store. */
  note(): void {
    if (this.joined === '') this.joined = identityAt(this.database);
  }

  /** Returns a Fault with the code STORE_MISSING if the store was removed or replaced; undefined if it is the same. */
  changedFault(): Fault | undefined {
    if (this.joined === '') return undefined;
    const found = this.find();
    // guard: replaced-store-not-joined
    if (found === this.joined) return undefined;
    const change = found === '' ? 'removed' : 'replaced';
    const message = `${this.database} was ${change} while the store was open. Nothing was written in its place; restore the directory, and open the store again.`;
    return new Fault('STORE_MISSING', message, { path: this.database });
  }

  private find(): string {
    try {
      return identityAt(this.database);
    } catch (error) {
      throw toReadFault(error, this.database);
    }
  }
}
