// Builds a hot rollback journal of SQLite, as a crash leaves it, that names a super-journal at its end. SQLite deletes
// the file of that name after the rollback.

/**
 * Returns a hot journal for the database.
 * @param {Buffer} database
 * @param {string} superJournal the path of the file to delete
 */
export function hotJournal(database, superJournal) {
  const pageSize = database.readUInt16BE(16) === 1 ? 65_536 : database.readUInt16BE(16);
  const magic = Buffer.from('d9d505f920a163d7', 'hex');
  const nonce = 7;
  const sector = 512;
  const header = Buffer.alloc(sector);
  magic.copy(header);
  header.writeUInt32BE(1, 8);
  header.writeUInt32BE(nonce, 12);
  header.writeUInt32BE(database.length / pageSize, 16);
  header.writeUInt32BE(sector, 20);
  header.writeUInt32BE(pageSize, 24);
  const page = database.subarray(0, pageSize);
  const record = Buffer.alloc(pageSize + 8);
  record.writeUInt32BE(1, 0);
  page.copy(record, 4);
  let sum = nonce;
  for (let at = pageSize - 200; at > 0; at -= 200) sum += page[at] ?? 0;
  record.writeUInt32BE(sum >>> 0, pageSize + 4);
  const name = Buffer.from(superJournal);
  const tail = Buffer.alloc(4 + name.length + 16);
  tail.writeUInt32BE(Math.floor(0x40000000 / pageSize) + 1, 0);
  name.copy(tail, 4);
  tail.writeUInt32BE(name.length, 4 + name.length);
  tail.writeUInt32BE(name.reduce((total, byte) => total + ((byte << 24) >> 24), 0) >>> 0, 8 + name.length);
  magic.copy(tail, 12 + name.length);
  return Buffer.concat([header, record, tail]);
}
