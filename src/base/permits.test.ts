import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { findHostProblem, isKnownPrivateHost, permitsOf } from './permits.js';

const lists = (send: Record<string, string[]>, destinations: string[] = []) => ({
  send: new Map(Object.entries(send)),
  destinations,
});

verifies('authority.send', 'an entry for one host permits a variable to be sent to no other host', () => {
  const permits = permitsOf({}, lists({ KEY: ['api.example.com', 'lab.example:8443', 'http://old.example'] }));
  const canSend = (url: string, variable = 'KEY'): boolean => permits.canSend(variable, new URL(url));
  for (const url of [
    'https://api.example.com/v1',
    'https://API.example.com:443',
    'https://lab.example:8443',
    'http://old.example/',
  ])
    expect(canSend(url), url).toBe(true);
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
    expect(canSend(url), url).toBe(false);
  expect(canSend('https://api.example.com', 'OTHER')).toBe(false);
  expect(canSend('https://api.example.com', 'key')).toBe(false);
});

verifies(
  'authority.send',
  "a provider's key may be sent to the provider's host and to the base URL that the operator set",
  () => {
    const env = { OPENAI_BASE_URL: 'http://10.0.0.5:8080/v1', ANTHROPIC_BASE_URL: 'nonsense' };
    const canSend = (variable: string, url: string): boolean => permitsOf(env).canSend(variable, new URL(url));
    expect(canSend('OPENAI_API_KEY', 'https://api.openai.com/v1')).toBe(true);
    expect(canSend('OPENAI_API_KEY', 'http://10.0.0.5:8080/other')).toBe(true);
    expect(canSend('ANTHROPIC_API_KEY', 'https://api.anthropic.com/v1')).toBe(true);
    expect(canSend('OPENAI_API_KEY', 'https://api.anthropic.com/v1')).toBe(false);
    expect(canSend('ANTHROPIC_API_KEY', 'http://10.0.0.5:8080/v1')).toBe(false);
    expect(canSend('AWS_SECRET_ACCESS_KEY', 'https://api.openai.com/v1')).toBe(false);
  },
);

verifies('authority.reach', 'an entry for one host permits no other host and no other port', () => {
  const permits = permitsOf({}, lists({ KEY: ['10.0.0.6:81'] }, ['127.0.0.1:8080', '10.0.0.5', '[::1]:9']));
  const reachable = [
    'http://127.0.0.1:8080',
    'http://10.0.0.5',
    'https://10.0.0.5',
    'http://[::1]:9',
    'http://10.0.0.6:81',
  ];
  for (const url of reachable) expect(permits.canReach(new URL(url)), url).toBe(true);
  for (const url of ['http://127.0.0.1', 'http://127.0.0.1:8081', 'http://10.0.0.5:8080', 'http://10.0.0.6'])
    expect(permits.canReach(new URL(url)), url).toBe(false);
});

verifies('authority.reach', 'addresses of this machine and of private networks are recognized as non-public', () => {
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

verifies('authority.send', 'a malformed host entry is refused', () => {
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
