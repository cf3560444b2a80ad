import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { compareVersions, isPrerelease, isVersion } from './semver.js';

const valid = [
  '0.0.0',
  '1.2.3',
  '10.20.30',
  '1.0.0-alpha.1',
  '1.0.0-0A.is.legal',
  '1.0.0--',
  '1.0.0+build.007',
  '1.0.0-rc.1+e7',
];
const invalid = [
  '',
  '1',
  '1.0',
  'v1.0',
  'v1.0.0',
  'latest',
  '1.0.0.0',
  '01.0.0',
  '1.0.0-',
  '1.0.0-a..b',
  '1.0.0-01',
  '1.0.0+',
  '^1.0.0',
  ' 1.0.0',
  '1.0.0\n',
  '99999999999999999999.0.0',
  `1.0.0-${'a'.repeat(300)}`,
];

verifies('lsem.4.shape', 'semantic versions are accepted, and texts without a defined order are refused', () => {
  expect(valid.filter((version) => !isVersion(version))).toEqual([]);
  expect(invalid.filter((version) => isVersion(version))).toEqual([]);
});

verifies('lsem.4.shape', 'versions are ordered by precedence, prereleases before their release', () => {
  const inOrder = [
    'nonsense',
    '1.0.0-1',
    '1.0.0-2',
    '1.0.0-10',
    '1.0.0-9999999999999999999.b',
    '1.0.0-10000000000000000001',
    '1.0.0-10000000000000000002.a',
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-alpha.beta',
    '1.0.0-beta',
    '1.0.0-rc.1',
    '1.0.0',
    '1.0.1',
    '1.2.0',
    '1.10.0',
    '2.0.0',
  ];
  for (const [index, version] of inOrder.entries()) {
    for (const [other, later] of inOrder.entries()) {
      expect(Math.sign(compareVersions(version, later)), `${version} and ${later}`).toBe(Math.sign(index - other));
    }
  }
  expect(compareVersions('1.0.0+a', '1.0.0+b')).toBe(0);
  expect(['1.0.0-rc.1', '1.0.0', '1.0.0+a-b', 'x-y'].map(isPrerelease)).toEqual([true, false, false, false]);
});
