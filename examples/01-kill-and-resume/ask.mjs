// The way from the order to the world outside: one request, one answer.

/** @import { Json } from 'rondo/protocol' */
/** @typedef {{ kind: string, name: string, about: Json, key: string }} Request */

/** @param {Request} request @returns {Promise<string>} */
export async function ask(request) {
  const url = process.env.DEMO_WORLD ?? '';
  const response = await fetch(url, { method: 'POST', body: JSON.stringify({ ...request, pid: process.pid }) });
  if (!response.ok) throw new Error(`The world answered ${response.status} to "${request.name}".`);
  return response.text();
}
