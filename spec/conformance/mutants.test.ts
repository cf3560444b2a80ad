import { expect } from 'vitest';
import { checkConformance } from '../../src/conformance/run-suite.js';
import { isProof } from '../support/repetitions.js';
import { verifies } from '../verifies.js';
import { mini } from './mini.js';
import { mutants, type Wrong } from './mutants.js';

/** Checks that each mutant fails in addition to its own check, because they detect the same mistake. */
const alsoFailing: { readonly [W in Wrong]?: readonly string[] } = {
  // A definition of DEF-09 has no backend either. A member that DEF-09 does not find is missing in a round trip too.
  'DEF-01': ['DEF-09'],
  'DEF-09': ['DEF-12'],
  // A missing member that is filled in is also filled in if it is misspelt. Two definitions are also two versions.
  'DEF-02': ['DEF-16'],
  'DEF-03': ['DEF-15'],
  'DEF-07': ['DEF-16'],
  // A mistake in the validation of any call affects children too, and violates the diagram.
  'VAL-01': ['VAL-02', 'VAL-05', 'LIF-11'],
  'VAL-02': ['VAL-05'],
  'VAL-04': ['VAL-05', 'LIF-11'],
  'VAL-06.coerced': ['VAL-01', 'VAL-07'],
  // A gap in the lifecycle of one kind affects roots, children, code and agents, and the checks over all runs.
  'LIF-01': ['LIF-09', 'LIF-11', 'LIF-12', 'LIF-13', 'CMP-14'],
  'LIF-02': ['LIF-09', 'LIF-11', 'LIF-12', 'LIF-13', 'TRC-12', 'TRC-16', 'CMP-14'],
  'LIF-03': ['LIF-09', 'LIF-11', 'LIF-12', 'LIF-13', 'LIF-14', 'TRC-12', 'TRC-15', 'TRC-16', 'CMP-14'],
  'LIF-04': ['LIF-11'],
  'LIF-06.twice': ['VAL-05', 'LIF-11'],
  'LIF-08': ['LIF-06', 'LIF-11'],
  'LIF-09': ['VAL-05', 'LIF-11', 'LIF-12', 'LIF-13', 'TRC-16', 'CMP-14'],
  'LIF-10': ['CMP-07'],
  // TRC-19 checks all payloads.
  'TRC-04': ['DEF-15', 'TRC-19'],
  'TRC-05': ['TRC-19'],
  'TRC-06': ['TRC-19'],
  'TRC-07': ['TRC-19'],
  'TRC-08': ['TRC-19'],
  'TRC-09': ['TRC-19'],
  'TRC-10': ['TRC-11', 'TRC-19'],
  'TRC-12': ['TRC-19'],
  'TRC-12.text': ['TRC-19'],
  'TRC-13': ['TRC-19'],
  'TRC-16': ['LIF-06', 'LIF-11', 'TRC-19'],
  // A wrong frame affects children of every kind.
  'TRC-11': ['LIF-12', 'LIF-13', 'LIF-14', 'TRC-20', 'CMP-14'],
  'TRC-20': ['LIF-12', 'LIF-13', 'LIF-14', 'CMP-14'],
  'TRC-20.backwards': ['LIF-12', 'LIF-13', 'CMP-14'],
  'TRC-20.batched': ['LIF-12', 'LIF-13', 'LIF-14', 'CMP-01', 'CMP-14'],
  'TRC-20.unframed': ['LIF-09', 'CMP-14'],
  // Concurrent steps violate the frames, the order and the stop at a failure.
  'CMP-01': ['LIF-03', 'LIF-06', 'LIF-10', 'LIF-11', 'CMP-07', 'CMP-08', 'CMP-10', 'CMP-12'],
  'CMP-02': ['CMP-09'],
  'CMP-03': ['CMP-04'],
  'CMP-08': ['LIF-11', 'TRC-20', 'CMP-05'],
  'CMP-10': ['TRC-20', 'CMP-14'],
  'CMP-11.thrown': ['LIF-11'],
  'CMP-12': ['LIF-11'],
  'CMP-13': ['LIF-06', 'LIF-11', 'LIF-13', 'LIF-14', 'CMP-10', 'CMP-14'],
};

const all = Object.keys(mutants) as Wrong[];
/** `npm run proof` runs every mutant; other runs take each eighth. */
const tested = isProof ? all : all.filter((_, index) => index % 8 === 0);

for (const wrong of tested) {
  const [id = ''] = wrong.split('.');
  verifies('lsem.mutants', `a runtime with the mistake ${wrong} fails exactly the checks that detect it`, async () => {
    const report = await checkConformance(mini({ wrong }));
    const failed = report.checks.filter(({ status }) => status === 'fail');
    expect(failed.map((check) => check.id).sort()).toEqual([id, ...(alsoFailing[wrong] ?? [])].sort());
    expect(report.checks.filter(({ status }) => status === 'not-applicable')).toEqual([]);
    expect(failed.every(({ note }) => note !== undefined && !note.includes('aborted'))).toBe(true);
    const binding = failed.some(({ level }) => level === 'MUST' || level === 'IMPLIED');
    expect(report.summary).toMatchObject({ failed: failed.length, conformant: !binding });
  });
}

verifies('lsem.mutants', 'every check of a runtime has a mutant that fails it', async () => {
  const report = await checkConformance(mini(), { only: [] });
  const ofRuntimes = report.checks.map(({ id }) => id).filter((id) => !/^(?:CNF|NEG)/.test(id));
  expect(ofRuntimes).toHaveLength(73);
  expect(ofRuntimes.filter((id) => !Object.hasOwn(mutants, id))).toEqual([]);
});
