// Thousands of broken hosted loops, as text through the reader of files and as values through the check: none crashes,
// hangs, pollutes a prototype, fails without a typed error, or is accepted without a maximum of turns. RONDO_SEED
// repeats a run.

import { expect } from 'vitest';
import { parseHostedLoopText } from '../../src/adapters/files/hosted-files.js';
import { LoopError } from '../../src/base/errors.js';
import { parseHostedLoop } from '../../src/host/hosted/hosted-document.js';
import type { HostedLoopDocument } from '../../src/protocol/hosted-loop.js';
import { inProcessorTime } from '../support/processor-time.js';
import { fullHostedLoop } from '../support/random-hosted-documents.js';
import { repetitions } from '../support/repetitions.js';
import { verifies } from '../verifies.js';
import {
  asToml,
  codeOnlyValue,
  define,
  keys,
  type RandomSource,
  randomFrom,
  randomObject,
  scramble,
} from './broken-definitions.js';
import { hugeTexts } from './huge-texts.js';

const SEED = Number(process.env.RONDO_SEED ?? 1);
const CASES = repetitions(10_000, 200);
const LIMIT_MS = 1000;

type Fields = { [name: string]: unknown };

const values: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  '',
  '$',
  '$.last',
  '$..*',
  'a',
  'env:A',
  [],
  {},
  [[]],
  { a: 1 },
];

/** Returns the full document with up to three random changes. */
function randomDocument(random: RandomSource): Fields {
  const root = { ...structuredClone(fullHostedLoop), input: { since: 0 } } as unknown as Fields;
  for (let times = random.below(4); times > 0; times--) {
    const target = randomObject(root, random);
    const key = random.pick([...Object.keys(target), random.pick(keys)]);
    const kind = random.below(4);
    if (kind === 0) delete target[key];
    else if (kind === 1) define(target, key, structuredClone(random.pick(values)));
    else if (kind === 2) define(target, random.pick(keys), Object.hasOwn(target, key) ? target[key] : null);
    else define(target, key, structuredClone(randomObject(root, random)));
  }
  return root;
}

function assertBounded({ stop }: HostedLoopDocument, where: string): void {
  expect(Number.isSafeInteger(stop.maxTurns) && stop.maxTurns >= 1, `${where} has no maximum of turns`).toBe(true);
}

/** Parses a text and asserts that it is accepted or rejected properly and in time. Returns whether it is accepted. */
async function isAccepted(file: string, text: string, where: string): Promise<boolean> {
  const { document, badFiles } = await inProcessorTime(
    LIMIT_MS,
    () => parseHostedLoopText(file, text, parseHostedLoop),
    where,
  );
  expect(badFiles.length > 0, where).toBe(document === undefined);
  for (const { reason, path = '', line = 1 } of badFiles) {
    const message = `${path} ${reason}`;
    const isSound = reason !== '' && message.length < 1000 && !/\p{Surrogate}/u.test(message) && line >= 1;
    expect(isSound, `${where}: ${message}`).toBe(true);
  }
  if (document === undefined) return false;
  assertBounded(document, where);
  const again = parseHostedLoopText('again.json', JSON.stringify(document), parseHostedLoop);
  expect(again.document, `${where} changed in a round trip`).toEqual(document);
  return true;
}

verifies(
  'hosted.document',
  `every broken hosted loop file is rejected with a typed error (${CASES} files)`,
  async () => {
    const random = randomFrom(SEED);
    let accepted = 0;
    for (let index = 0; index < CASES; index++) {
      const where = `RONDO_SEED=${SEED}, case ${index}`;
      const value = randomDocument(random);
      const isScrambled = random.next() < 0.3;
      const [json, toml] = [JSON.stringify(value), asToml(value)];
      if (await isAccepted('x.json', isScrambled ? scramble(json, random) : json, `${where}, JSON`)) accepted++;
      await isAccepted('x.toml', isScrambled ? scramble(toml, random) : toml, `${where}, TOML`);
    }
    expect(accepted, 'too few documents are valid').toBeGreaterThan(CASES / 20);
    expect(accepted, 'too few documents are broken').toBeLessThan(CASES / 2);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  },
  300_000,
);

verifies(
  'hosted.document',
  'a huge hosted loop file is rejected within a second',
  async () => {
    for (const [index, text] of hugeTexts.entries()) {
      expect(await isAccepted('x.json', text, `huge text ${index}, JSON`)).toBe(false);
      expect(await isAccepted('x.toml', text, `huge text ${index}, TOML`)).toBe(false);
    }
  },
  300_000,
);

verifies(
  'hosted.document',
  'every invalid hosted loop from code is rejected with a typed error',
  async () => {
    const random = randomFrom(SEED);
    for (let index = 0; index < CASES; index++) {
      const value = randomDocument(random);
      define(randomObject(value, random), random.pick(keys), codeOnlyValue(random));
      const where = `RONDO_SEED=${SEED}, value ${index}`;
      const parse = (): void => {
        try {
          assertBounded(parseHostedLoop(value), where);
        } catch (thrown) {
          expect(thrown, where).toBeInstanceOf(LoopError);
          expect((thrown as LoopError).code, where).toMatch(/^(?:DEFINITION|GRANT)_INVALID$/);
        }
      };
      await inProcessorTime(LIMIT_MS, parse, where);
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  },
  300_000,
);
