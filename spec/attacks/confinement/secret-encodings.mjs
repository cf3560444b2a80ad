// Forms in which a server or a program can repeat a secret, and a search for a secret in all of them.

import { expect } from '../../support/store-attack.mjs';

const percent = (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
const unit = (code) => `\\u${code.toString(16).padStart(4, '0')}`;
const bytesOf = (text) => [...Buffer.from(text)];
const each = (text, one) => [...text].map((character, n) => one(character, n)).join('');

/** What the text of a secret becomes; each is a form that servers, logs or traces really use. */
export const forms = {
  plain: (text) => text,
  quoted: (text) => `'${text}'`,
  glued: (text) => `x${text}x`,
  url: encodeURIComponent,
  'url-lower': (text) => encodeURIComponent(text).replace(/%../g, (code) => code.toLowerCase()),
  'url-all': (text) => bytesOf(text).map(percent).join(''),
  'url-partial': (text) => each(text, (character, n) => (n % 3 === 0 ? percent(character.charCodeAt(0)) : character)),
  'url-form': (text) => new URLSearchParams({ v: text }).toString().slice(2),
  'url-path': (text) => encodeURI(text),
  'url-twice': (text) => encodeURIComponent(encodeURIComponent(text)),
  json: (text) => JSON.stringify(text),
  'json-twice': (text) => JSON.stringify(JSON.stringify(text)),
  'json-slash': (text) => JSON.stringify(text).replaceAll('/', '\\/'),
  'json-units': (text) => each(text, (character) => unit(character.charCodeAt(0))),
  'json-units-upper': (text) =>
    each(text, (character) => `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`),
  'json-units-some': (text) =>
    each(text, (character) => (/\w/.test(character) ? character : unit(character.charCodeAt(0)))),
  base64: (text) => Buffer.from(text).toString('base64'),
  'base64-bare': (text) => Buffer.from(text).toString('base64').replace(/=+$/, ''),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  'base64-shift-1': (text) => Buffer.from(`:${text}`).toString('base64'),
  'base64-shift-2': (text) => Buffer.from(`u:${text};`).toString('base64'),
  'base64-dump': (text) => Buffer.from(`Host: h\r\nKey: ${text}\r\n`).toString('base64'),
};

/** Encodings that are mixed, repeated, or seldom. */
export const rarer = {
  hex: (text) => Buffer.from(text).toString('hex'),
  'hex-upper': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  html: (text) =>
    each(
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
    each(text, (character) => ({ '/': '&sol;', '+': '&plus;', '=': '&equals;' })[character] ?? character),
  'json-four-times': (text) => Array.from({ length: 4 }).reduce((rest) => JSON.stringify(rest), text),
  'html-numbers': (text) => each(text, (character) => `&#${character.charCodeAt(0)};`),
};

const NAMED = { amp: '&', lt: '<', gt: '>', quot: '"', sol: '/', plus: '+', equals: '=' };

/** Undoes one layer of every escape at once. */
function decoded(text) {
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

/** A text with every run that is base64 or hex followed by what it decodes to. */
function unpacked(text) {
  const runs = text.match(/[\w+/=:-]{12,}/g) ?? [];
  const found = runs.flatMap((run) => [
    Buffer.from(run, 'base64').toString('latin1'),
    Buffer.from(run.replace(/[^0-9a-f]/gi, ''), 'hex').toString('latin1'),
  ]);
  return [text, ...found].join('\n');
}

/** Each way to look at a text. */
function views(text) {
  const all = [text];
  for (let layer = 0; layer < 6; layer++) all.push(decoded(all.at(-1) ?? ''));
  const opened = all.map((one) => unpacked(one.replace(/(\\r|\\n|\r|\n)/g, '')));
  return [...new Set([...all, ...all.map(unpacked), ...opened, ...opened.map(decoded), ...opened.map(unpacked)])];
}

/** The parts of secrets that are found in a text, in any form. @param {Record<string, string>} places @param {readonly string[]} parts */
export function assertAbsent(places, parts) {
  for (const [place, text] of Object.entries(places)) {
    for (const view of views(text)) {
      for (const part of parts) {
        const at = view.indexOf(part);
        const around = at < 0 ? '' : view.slice(Math.max(0, at - 60), at + part.length + 20);
        expect(at < 0, `nothing of the secret in ${place}`, `it has ${part} in: ${around}`);
      }
    }
  }
}

/** A text that nothing else has, of these many characters, with the characters that escapes are for. */
export function secretOf(random, length = 30) {
  const letters = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';
  const odd = '/+"&<=';
  return Array.from({ length }, (_, n) =>
    n % 5 === 3 ? odd[Math.floor(n / 5) % odd.length] : letters[Math.floor(random() * letters.length)],
  ).join('');
}
