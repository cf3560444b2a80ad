import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { findHostProblem, isKnownPrivateHost, permitsOf } from './permits.js';

const lists = (send: Record<string, string[]>, destinations: string[] = []) => ({
  send: new Map(Object.entries(send)),
  destinations,
});

verifies('authority.send', 'an entry for one host lets a variable go to no other', () => {
  const permits = permitsOf({}, lists({ KEY: ['api.example.com', 'lab.example:8443', 'http://old.example'] }));
  const may = (url: string, variable = 'KEY'): boolean => permits.canSend(variable, new URL(url));
  for (const url of [
    'https://api.example.com/v1',
    'https://API.example.com:443',
    'https://lab.example:8443',
    'http://old.example/',
  ])
    expect(may(url), url).toBe(true);
  for (const url of [
    'http://api.example.com',
    'https://api.example.com:444',
    'https://api.example.com.evil.example',
    'https://xapi.example.com',
    'https://example.com',
    'https://api.example.com./',
    'https://lab.example',
    'http://lab.example:8443',
    'https://old.example',
    'https://evil.example/?api.example.com',
    'https://evil.example#api.example.com',
  ])
    expect(may(url), url).toBe(false);
  expect(may('https://api.example.com', 'OTHER')).toBe(false);
  expect(may('https://api.example.com', 'key')).toBe(false);
});

verifies('authority.send', 'a key of a provider goes to its own hosts, and to those that the operator set', () => {
  const env = { OPENAI_BASE_URL: 'http://10.0.0.5:8080/v1', ANTHROPIC_BASE_URL: 'nonsense' };
  const may = (variable: string, url: string): boolean => permitsOf(env).canSend(variable, new URL(url));
  expect(may('OPENAI_API_KEY', 'https://api.openai.com/v1')).toBe(true);
  expect(may('OPENAI_API_KEY', 'http://10.0.0.5:8080/other')).toBe(true);
  expect(may('ANTHROPIC_API_KEY', 'https://api.anthropic.com/v1')).toBe(true);
  expect(may('OPENAI_API_KEY', 'https://api.anthropic.com/v1')).toBe(false);
  expect(may('ANTHROPIC_API_KEY', 'http://10.0.0.5:8080/v1')).toBe(false);
  expect(may('AWS_SECRET_ACCESS_KEY', 'https://api.openai.com/v1')).toBe(false);
});

verifies('authority.reach', 'an entry for one host opens no other host, and no other port', () => {
  const permits = permitsOf({}, lists({ KEY: ['10.0.0.6:81'] }, ['127.0.0.1:8080', '10.0.0.5', '[::1]:9']));
  const reached = [
    'http://127.0.0.1:8080',
    'http://10.0.0.5',
    'https://10.0.0.5',
    'http://[::1]:9',
    'http://10.0.0.6:81',
  ];
  for (const url of reached) expect(permits.canReach(new URL(url)), url).toBe(true);
  for (const url of ['http://127.0.0.1', 'http://127.0.0.1:8081', 'http://10.0.0.5:8080', 'http://10.0.0.6'])
    expect(permits.canReach(new URL(url)), url).toBe(false);
});

verifies('authority.reach', 'an address of this machine is not taken for a public one', () => {
  for (const host of [
    'localhost',
    'a.localhost',
    'localhost.',
    '127.1',
    '0x7f.1',
    '[::1]',
    '[::ffff:10.0.0.1]',
    '10.0.0.5',
    '169.254.169.254',
  ])
    expect(isKnownPrivateHost(new URL(`http://${host}/`)), host).toBe(true);
  for (const host of ['example.com', 'localhost.example', '8.8.8.8'])
    expect(isKnownPrivateHost(new URL(`http://${host}/`)), host).toBe(false);
});

verifies('authority.send', 'a misspelt host is refused', () => {
  for (const text of ['api.example.com', '127.0.0.1:8080', '[::1]:80', 'http://lab:81', 'https://x.example'])
    expect(findHostProblem(text), text).toBeUndefined();
  for (const text of [
    '',
    '*',
    '*.example.com',
    'a/b',
    'https://a/b',
    'a b',
    'user@host',
    'ftp://a',
    'a:port',
    'a:99999',
    '[x]',
    'a?b',
    'a#b',
  ])
    expect(findHostProblem(text), text).toContain('must be a host');
});
