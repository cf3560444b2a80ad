import { expect } from 'vitest';
import { requirements } from '../requirements.js';
import { verifies } from '../verifies.js';
import { citationFaults, citationsIn } from './citations.js';
import { isProofOnly, isTest, sources } from './tree.js';

verifies('house.requirements', 'a test of `npm test` or `.ci/run` cites every requirement', () => {
  const tests = sources(['src', 'spec', 'examples', 'bench']).filter(({ file }) => isTest(file) && !isProofOnly(file));
  expect(citationFaults(Object.keys(requirements), tests.flatMap(citationsIn))).toEqual([]);
});

verifies('house.requirements', 'an uncited id and an unknown citation are both rejected', () => {
  const citation = { file: 'src/a.test.ts', id: 'a' };
  expect(citationFaults(['a'], [citation])).toEqual([]);
  expect(citationFaults(['a', 'b'], [citation])).toEqual(["no test cites 'b'"]);
  expect(citationFaults([], [citation])).toHaveLength(1);
});

verifies('house.requirements', 'a citation in a comment or a string does not count', () => {
  const text = `verifies('a', 'x', f);\n// verifies('b', 'x', f);\nconst s = "verifies('c', 'x', f)";\nverifies(d, 'x', f);`;
  expect(citationsIn({ file: 'src/a.test.ts', text })).toEqual([{ file: 'src/a.test.ts', id: 'a' }]);
});
