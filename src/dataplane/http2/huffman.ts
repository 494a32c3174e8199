// The Huffman code of RFC 7541 appendix B; knows no field.

/** Bits of the code of each byte, and of EOS. The code is canonical: with the length, each code is known. */
export const CODE_LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const EOS = 256;
const MAX_BITS = 30;

const NIBBLES = 16;
/** Of an entry of `STEPS`: the next state, whether a byte is complete, which one, and that there is no such code. */
const STATE = 0xff;
const HAS_BYTE = 0x100;
const BYTE_SHIFT = 16;
const IS_INVALID = 0x200;

/** For each state and each four bits. */
const STEPS = new Uint32Array(256 * NIBBLES);
/** Whether a string may end in a state: all bits since the last byte are ones, and fewer than eight. */
const MAY_END = new Uint8Array(256);

type Node = [Node | number | null, Node | number | null];

/** The codes as a tree. */
function treeOf(): Node {
  const root: Node = [null, null];
  let code = 0;
  for (let bits = 1; bits <= MAX_BITS; bits++) {
    code *= 2;
    for (let symbol = 0; symbol <= EOS; symbol++) {
      if (CODE_LENGTHS[symbol] !== bits) continue;
      let node = root;
      for (let bit = bits - 1; bit > 0; bit--) {
        const side = (code >>> bit) & 1;
        const next = node[side] ?? [null, null];
        node[side] = next;
        node = next as Node;
      }
      node[code & 1] = symbol;
      code++;
    }
  }
  return root;
}

function fillSteps(): void {
  const root = treeOf();
  const states: Node[] = [root];
  const depths = [0];
  const areOnes = [true];
  for (let state = 0; state < states.length; state++) {
    for (const side of [0, 1] as const) {
      const next = states[state]?.[side];
      if (!Array.isArray(next)) continue;
      states.push(next);
      depths.push((depths[state] ?? 0) + 1);
      areOnes.push(areOnes[state] === true && side === 1);
    }
    MAY_END[state] = areOnes[state] === true && (depths[state] ?? 0) < 8 ? 1 : 0;
  }
  for (let state = 0; state < states.length; state++)
    for (let bits = 0; bits < NIBBLES; bits++)
      STEPS[state * NIBBLES + bits] = stepOf(states[state] ?? root, bits, { root, states });
}

function stepOf(
  from: Node,
  bits: number,
  { root, states }: { readonly root: Node; readonly states: readonly Node[] },
): number {
  let node = from;
  let result = 0;
  for (let bit = 3; bit >= 0; bit--) {
    const next = node[((bits >>> bit) & 1) as 0 | 1];
    if (next === null || next === EOS) return IS_INVALID;
    if (Array.isArray(next)) node = next;
    else {
      result = HAS_BYTE | (next << BYTE_SHIFT);
      node = root;
    }
  }
  return result | states.indexOf(node);
}

fillSteps();

/** The most bytes that so many coded ones stand for. */
export const decodedBound = (size: number): number => Math.ceil((size * 8) / 5);

/** Decodes a part of `bytes` to the beginning of `into`. Returns how many bytes that are; -1: they are no valid code. */
export function decodeHuffman(
  bytes: Uint8Array,
  { start, end }: { readonly start: number; readonly end: number },
  into: Uint8Array,
): number {
  let state = 0;
  let size = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    const high = STEPS[state * NIBBLES + (byte >>> 4)] ?? IS_INVALID;
    if ((high & HAS_BYTE) !== 0) into[size++] = high >>> BYTE_SHIFT;
    const low = STEPS[(high & STATE) * NIBBLES + (byte & 15)] ?? IS_INVALID;
    if ((low & HAS_BYTE) !== 0) into[size++] = low >>> BYTE_SHIFT;
    if (((high | low) & IS_INVALID) !== 0) return -1;
    state = low & STATE;
  }
  return MAY_END[state] === 1 ? size : -1;
}
