import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { shortVersion } from './short-version.js';

verifies('cli.tree', 'a version that is a digest has a short form, and any other stays as it is', () => {
  const digest = '1a2b3c4d'.repeat(8);
  expect(shortVersion(`0.0.0+${digest}`)).toBe('0.0.0+1a2b3c4d');
  expect(shortVersion(`flow@0.0.0+${digest}`)).toBe('flow@0.0.0+1a2b3c4d');
  for (const version of [
    '1.0.0',
    '1.0.0-beta.1+build',
    `1.0.0+${digest.slice(1)}`,
    `1.0.0+${digest.toUpperCase()}`,
    '',
  ])
    expect(shortVersion(version)).toBe(version);
});
