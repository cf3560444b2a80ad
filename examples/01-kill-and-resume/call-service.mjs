// Sends a request of the order to the simulated services.

/** @import { Json } from 'rondo/protocol' */
/** @typedef {{ kind: string, name: string, input: Json, key: string }} ServiceCall */

/** Returns the answer of the service. @param {ServiceCall} call @returns {Promise<string>} */
export async function callService(call) {
  const url = process.env.DEMO_SERVICES ?? '';
  const response = await fetch(url, { method: 'POST', body: JSON.stringify({ ...call, pid: process.pid }) });
  if (!response.ok) throw new Error(`The services answered "${call.name}" with status ${response.status}.`);
  return response.text();
}
