import { createRondo } from 'rondo';
import { report } from './loops/report.js';

const day = process.argv[2] ?? new Date().toISOString().slice(0, 10);

const rondo = await createRondo(); // SQLite in .rondo
await rondo.start(report, { day }, { key: `report-${day}` });
await rondo.close(); // The turn is recorded. The worker continues it if it has not ended yet.
