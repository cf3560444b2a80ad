// The services that the programs call. The first reservation fails, so that a retry is necessary.
let reservations = 0;

export async function reserve(sku: string, amount: number): Promise<{ reservation: string }> {
  reservations += 1;
  if (reservations === 1) throw new Error('The warehouse does not answer.');
  return { reservation: `${sku} for ${amount}` };
}

export async function ship(sku: string): Promise<{ parcel: string }> {
  return { parcel: `${sku} on Monday` };
}
