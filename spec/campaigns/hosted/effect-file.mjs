// A file of effects: each process appends a line for an effect that it performs, which a kill does not take back.

import { openSync, readFileSync, writeSync } from 'node:fs';

/** Returns the function that appends an effect. @param {string} path */
export function effectFile(path) {
  const file = openSync(path, 'a');
  return (/** @type {import('./hosted-host.mjs').SunkEffect} */ effect) => {
    writeSync(file, `${JSON.stringify(effect)}\n`);
  };
}

/** Reads the effects. @param {string} path @returns {import('./hosted-host.mjs').SunkEffect[]} */
export function readEffects(path) {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}
