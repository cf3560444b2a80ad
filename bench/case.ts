// Measures one case and prints its microseconds per step. `measure` starts it.

import { cases } from './cases.js';
import { measureHere } from './measure.js';

const name = process.argv[2] as keyof typeof cases;
console.log(await measureHere(await cases[name]()));
process.exit();
