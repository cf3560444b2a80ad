/**
 * Broken definitions by the thousand, as text through the same reading as files and as values through the same check:
 * nothing crashes, hangs, pollutes or fails without a typed error. RONDO_SEED repeats a run.
 */
import { expect } from 'vitest';
import { parseDefinitionText } from '../../src/adapters/files/parse-definition.js';
import { LoopError } from '../../src/base/errors.js';
import { parseDefinition } from '../../src/loops/definition/definition.js';
import { verifies } from '../verifies.js';
import { alien, asToml, define, diceOf, document, keys, scramble, somewhere } from './broken-definitions.js';
import { monsters } from './monstrous-texts.js';

const SEED = Number(process.env.RONDO_SEED ?? 1);
const CASES = 10_000;
const SLOW_MS = 1000;

/** Time of the processor, which other work on the machine does not stretch. */
function spentMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

/** What is told about a text, after it was seen to be told well and in time. */
function judge(file: string, text: string, where: string): boolean {
  const start = process.cpuUsage();
  const judged = parseDefinitionText(file, text, parseDefinition);
  expect(spentMs(start), `${where} took too long`).toBeLessThan(SLOW_MS);
  if ('definition' in judged) {
    const again = parseDefinitionText('again.json', JSON.stringify(judged.definition), parseDefinition);
    expect(again, `${where} is not what it was after a round trip`).toEqual(judged);
    return true;
  }
  expect(judged.badFiles.length, where).toBeGreaterThan(0);
  for (const { reason, path = '', line = 1 } of judged.badFiles) {
    const told = `${path} ${reason}`;
    const sound = reason !== '' && told.length < 1000 && !/\p{Surrogate}/u.test(told) && line >= 1;
    expect(sound && !told.includes('cannot be read'), `${where}: ${told}`).toBe(true);
  }
  return false;
}

/** Whether a value is accepted; what it is refused with is a LoopError. */
function accepts(value: unknown, where: string): boolean {
  const start = process.cpuUsage();
  try {
    parseDefinition(value, where);
    return true;
  } catch (error) {
    expect(error, where).toBeInstanceOf(LoopError);
    expect((error as LoopError).code, where).toBe('DEFINITION_INVALID');
    return false;
  } finally {
    expect(spentMs(start), `${where} took too long`).toBeLessThan(SLOW_MS);
  }
}

verifies(
  'fuzz.definitions',
  `a broken definition file takes the process with it (${CASES} of them)`,
  () => {
    const dice = diceOf(SEED);
    const start = process.cpuUsage();
    const accepted = { json: 0, toml: 0 };
    for (let index = 0; index < CASES; index++) {
      const where = `RONDO_SEED=${SEED}, case ${index}`;
      const value = document(dice);
      const scrambled = dice.random() < 0.4;
      const [json, toml] = [JSON.stringify(value), asToml(value)];
      if (judge('x.json', scrambled ? scramble(json, dice) : json, `${where}, JSON`)) accepted.json++;
      if (judge('x.toml', scrambled ? scramble(toml, dice) : toml, `${where}, TOML`)) accepted.toml++;
    }
    expect(spentMs(start), `RONDO_SEED=${SEED}, all`).toBeLessThan(100_000);
    for (const count of Object.values(accepted)) {
      expect(count, 'too few stay good to tell').toBeGreaterThan(CASES / 20);
      expect(count, 'too few are broken to tell').toBeLessThan(CASES / 2);
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  },
  300_000,
);

verifies(
  'fuzz.definitions',
  'a definition of a megabyte keeps the process busy for minutes',
  () => {
    for (const [index, text] of monsters.entries()) {
      expect(judge('x.json', text, `monster ${index}, JSON`)).toBe(false);
      expect(judge('x.toml', text, `monster ${index}, TOML`)).toBe(false);
    }
  },
  300_000,
);

verifies(
  'fuzz.definitions',
  'a value that code hands over is refused with an untyped error',
  () => {
    const dice = diceOf(SEED);
    let accepted = 0;
    for (let index = 0; index < CASES; index++) {
      const value = document(dice);
      if (dice.random() < 0.5) define(somewhere(value, dice), dice.pick(keys), alien(dice));
      const where = `RONDO_SEED=${SEED}, value ${index}`;
      if (accepts(dice.random() < 0.02 ? alien(dice) : value, where)) accepted++;
    }
    expect(accepted).toBeGreaterThan(CASES / 20);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  },
  300_000,
);
