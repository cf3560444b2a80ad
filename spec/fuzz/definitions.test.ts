// Thousands of broken definitions, as text through the parser of files and as values through the check: none crashes, hangs,
// pollutes a prototype or fails without a typed error. RONDO_SEED repeats a run.

import { expect } from 'vitest';
import { parseDefinitionText } from '../../src/adapters/files/parse-definition.js';
import { LoopError } from '../../src/base/errors.js';
import { parseDefinition } from '../../src/loops/definition/definition.js';
import { documentParser } from '../../src/loops/plan/workflow-document.js';
import { inProcessorTime } from '../support/processor-time.js';
import { repetitions } from '../support/repetitions.js';
import { verifies } from '../verifies.js';
import {
  asToml,
  codeOnlyValue,
  define,
  keys,
  randomDefinition,
  randomFrom,
  randomObject,
  scramble,
} from './broken-definitions.js';
import { hugeTexts } from './huge-texts.js';

const SEED = Number(process.env.RONDO_SEED ?? 1);
const CASES = repetitions(10_000);
const LIMIT_MS = 1000;

/** Parses a text and asserts that it is accepted or rejected properly and in time. Returns whether it is accepted. */
async function parsesAsDefinition(file: string, text: string, where: string): Promise<boolean> {
  const parsed = await inProcessorTime(LIMIT_MS, () => parseDefinitionText(file, text, documentParser), where);
  if ('definition' in parsed) {
    const again = parseDefinitionText('again.json', JSON.stringify(parsed.definition), documentParser);
    expect(again, `${where} changed in a round trip`).toEqual(parsed);
    return true;
  }
  expect(parsed.badFiles.length, where).toBeGreaterThan(0);
  for (const { reason, path = '', line = 1 } of parsed.badFiles) {
    const message = `${path} ${reason}`;
    const isSound = reason !== '' && message.length < 1000 && !/\p{Surrogate}/u.test(message) && line >= 1;
    expect(isSound && !message.includes('cannot be read'), `${where}: ${message}`).toBe(true);
  }
  return false;
}

/** True if a value is accepted. Asserts that a rejection is a LoopError. */
function accepts(value: unknown, where: string): Promise<boolean> {
  const isAccepted = (): boolean => {
    try {
      parseDefinition(value, where);
      return true;
    } catch (error) {
      expect(error, where).toBeInstanceOf(LoopError);
      expect((error as LoopError).code, where).toBe('DEFINITION_INVALID');
      return false;
    }
  };
  return inProcessorTime(LIMIT_MS, isAccepted, where);
}

verifies(
  'fuzz.definitions',
  `every broken definition file is rejected with a typed error (${CASES} files)`,
  async () => {
    const random = randomFrom(SEED);
    const accepted = { json: 0, toml: 0 };
    for (let index = 0; index < CASES; index++) {
      const where = `RONDO_SEED=${SEED}, case ${index}`;
      const value = randomDefinition(random);
      const scrambled = random.next() < 0.4;
      const [json, toml] = [JSON.stringify(value), asToml(value)];
      if (await parsesAsDefinition('x.json', scrambled ? scramble(json, random) : json, `${where}, JSON`))
        accepted.json++;
      if (await parsesAsDefinition('x.toml', scrambled ? scramble(toml, random) : toml, `${where}, TOML`))
        accepted.toml++;
    }
    for (const count of Object.values(accepted)) {
      expect(count, 'too few definitions are valid').toBeGreaterThan(CASES / 20);
      expect(count, 'too few definitions are broken').toBeLessThan(CASES / 2);
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  },
  300_000,
);

verifies(
  'fuzz.definitions',
  'a huge definition is rejected within a second',
  async () => {
    for (const [index, text] of hugeTexts.entries()) {
      expect(await parsesAsDefinition('x.json', text, `huge text ${index}, JSON`)).toBe(false);
      expect(await parsesAsDefinition('x.toml', text, `huge text ${index}, TOML`)).toBe(false);
    }
  },
  300_000,
);

verifies(
  'fuzz.definitions',
  'every invalid value from code is rejected with a typed error',
  async () => {
    const random = randomFrom(SEED);
    let accepted = 0;
    for (let index = 0; index < CASES; index++) {
      const value = randomDefinition(random);
      if (random.next() < 0.5) define(randomObject(value, random), random.pick(keys), codeOnlyValue(random));
      const where = `RONDO_SEED=${SEED}, value ${index}`;
      if (await accepts(random.next() < 0.02 ? codeOnlyValue(random) : value, where)) accepted++;
    }
    expect(accepted).toBeGreaterThan(CASES / 20);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  },
  300_000,
);
