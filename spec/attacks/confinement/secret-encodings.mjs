// Encodings in which a server or a program can echo a secret, and a search that finds a secret in any of them.

import { expect } from '../../support/store-attack.mjs';

const percentEncode = (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
const unicodeEscape = (code) => `\\u${code.toString(16).padStart(4, '0')}`;
const bytesOf = (text) => [...Buffer.from(text)];
const mapCharacters = (text, encode) => [...text].map((character, n) => encode(character, n)).join('');

/** Common encodings of a secret in responses, logs and traces. */
export const encodings = {
  plain: (text) => text,
  quoted: (text) => `'${text}'`,
  glued: (text) => `x${text}x`,
  url: encodeURIComponent,
  'url-lower': (text) => encodeURIComponent(text).replace(/%../g, (code) => code.toLowerCase()),
  'url-all': (text) => bytesOf(text).map(percentEncode).join(''),
  'url-partial': (text) =>
    mapCharacters(text, (character, n) => (n % 3 === 0 ? percentEncode(character.charCodeAt(0)) : character)),
  'url-form': (text) => new URLSearchParams({ v: text }).toString().slice(2),
  'url-path': (text) => encodeURI(text),
  'url-twice': (text) => encodeURIComponent(encodeURIComponent(text)),
  json: (text) => JSON.stringify(text),
  'json-twice': (text) => JSON.stringify(JSON.stringify(text)),
  'json-slash': (text) => JSON.stringify(text).replaceAll('/', '\\/'),
  'json-units': (text) => mapCharacters(text, (character) => unicodeEscape(character.charCodeAt(0))),
  'json-units-upper': (text) =>
    mapCharacters(text, (character) => `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`),
  'json-units-some': (text) =>
    mapCharacters(text, (character) => (/\w/.test(character) ? character : unicodeEscape(character.charCodeAt(0)))),
  base64: (text) => Buffer.from(text).toString('base64'),
  'base64-bare': (text) => Buffer.from(text).toString('base64').replace(/=+$/, ''),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  'base64-shift-1': (text) => Buffer.from(`:${text}`).toString('base64'),
  'base64-shift-2': (text) => Buffer.from(`u:${text};`).toString('base64'),
  'base64-dump': (text) => Buffer.from(`Host: h\r\nKey: ${text}\r\n`).toString('base64'),
};

/** Rare, combined and repeated encodings. */
export const rareEncodings = {
  hex: (text) => Buffer.from(text).toString('hex'),
  'hex-upper': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  html: (text) =>
    mapCharacters(
      text,
      (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[character] ?? character,
    ),
  'base64-of-url': (text) => Buffer.from(encodeURIComponent(text)).toString('base64'),
  'base64-of-json': (text) => Buffer.from(JSON.stringify({ k: text })).toString('base64'),
  'base64-in-url': (text) => encodeURIComponent(Buffer.from(text).toString('base64')),
  'base64-twice': (text) => Buffer.from(Buffer.from(text).toString('base64')).toString('base64'),
  'base64-lines': (text) =>
    Buffer.from(`${'x'.repeat(40)}${text}`)
      .toString('base64')
      .replace(/.{76}/g, '$&\r\n'),
  'base64-in-json-in-url': (text) => encodeURIComponent(JSON.stringify(Buffer.from(text).toString('base64'))),
  'hex-in-base64': (text) => Buffer.from(Buffer.from(text).toString('hex')).toString('base64'),
  'hex-of-base64': (text) => Buffer.from(Buffer.from(text).toString('base64')).toString('hex'),
  'hex-escapes': (text) =>
    bytesOf(text)
      .map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`)
      .join(''),
  'html-names': (text) =>
    mapCharacters(text, (character) => ({ '/': '&sol;', '+': '&plus;', '=': '&equals;' })[character] ?? character),
  'json-four-times': (text) => Array.from({ length: 4 }).reduce((rest) => JSON.stringify(rest), text),
  'html-numbers': (text) => mapCharacters(text, (character) => `&#${character.charCodeAt(0)};`),
};

const NAMED = { amp: '&', lt: '<', gt: '>', quot: '"', sol: '/', plus: '+', equals: '=' };

/** Decodes one layer of every kind of escape. */
function decodeEscapes(text) {
  return text
    .replace(/\\u([0-9a-f]{4})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/\\(["\\/])/g, '$1')
    .replace(/\\x([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8)))
    .replace(/%([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/&#x([0-9a-f]+);/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/&(amp|lt|gt|quot|sol|plus|equals);/g, (_, name) => NAMED[name]);
}

/** Returns the text, followed by the decoded form of every run of base64 or hexadecimal characters. */
function decodeRuns(text) {
  const runs = text.match(/[\w+/=:-]{12,}/g) ?? [];
  const decodedRuns = runs.flatMap((run) => [
    Buffer.from(run, 'base64').toString('latin1'),
    Buffer.from(run.replace(/[^0-9a-f]/gi, ''), 'hex').toString('latin1'),
  ]);
  return [text, ...decodedRuns].join('\n');
}

/** Returns the text in every decoded form. */
function decodedForms(text) {
  const layers = [text];
  for (let layer = 0; layer < 6; layer++) layers.push(decodeEscapes(layers.at(-1) ?? ''));
  const joined = layers.map((form) => decodeRuns(form.replace(/(\\r|\\n|\r|\n)/g, '')));
  const again = [...joined.map(decodeEscapes), ...joined.map(decodeRuns)];
  return [...new Set([...layers, ...layers.map(decodeRuns), ...joined, ...again])];
}

/**
 * Asserts that no text has a part of a secret, in any encoding. The keys of `texts` name the source
 * of each text.
 * @param {Record<string, string>} texts @param {readonly string[]} parts
 */
export function assertAbsent(texts, parts) {
  for (const [source, text] of Object.entries(texts)) {
    for (const form of decodedForms(text)) {
      for (const part of parts) {
        const at = form.indexOf(part);
        const excerpt = at < 0 ? '' : form.slice(Math.max(0, at - 60), at + part.length + 20);
        expect(at < 0, `no part of the secret in ${source}`, `${part} in: ${excerpt}`);
      }
    }
  }
}

/** Returns a random secret of `length` characters. It includes characters that encodings escape. */
export function randomSecret(random, length = 30) {
  const letters = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';
  const escaped = '/+"&<=';
  return Array.from({ length }, (_, n) =>
    n % 5 === 3 ? escaped[Math.floor(n / 5) % escaped.length] : letters[Math.floor(random() * letters.length)],
  ).join('');
}
