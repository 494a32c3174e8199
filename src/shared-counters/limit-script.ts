// The script that counts limits on the server of shared counters, its arguments and its replies; opens no connection.
import type { SharedCount, SharedDemand } from "../pdk/kit.ts";

/**
 * All limits in one step, by the server's clock. KEYS: one for each limit. ARGV: how (take, look, add), number of nodes, then for
 * each limit: algorithm, length of the window, capacity, units per second, cost, waiting, want. A window is a hash of its number `w`
 * and the counts `c` and, of the window before, `p`; a bucket of its level `l` at the time `t`.
 */
const limitScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local how, nodes = ARGV[1], tonumber(ARGV[2])
local fits, limits = true, {}
for i, key in ipairs(KEYS) do
  local at = 2 + (i - 1) * 7
  local s = { algorithm = ARGV[at + 1], current = 0, previous = 0, elapsed = 0, level = 0 }
  s.span, s.capacity, s.rate = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  s.cost, s.waiting, s.want = tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7])
  if s.algorithm == 'token_bucket' then
    local known = redis.call('HMGET', key, 'l', 't')
    s.level = s.capacity
    if known[1] then
      local gained = math.max(0, now - tonumber(known[2])) * s.rate / 1000
      s.level = math.min(s.capacity, tonumber(known[1]) + gained)
    end
    s.room = s.level
  else
    local known = redis.call('HMGET', key, 'w', 'c', 'p')
    s.window = math.floor(now / s.span)
    if known[1] then
      local window = tonumber(known[1])
      if window == s.window + 1 then s.window = window end
      if window == s.window then
        s.current, s.previous = tonumber(known[2]), tonumber(known[3])
      elseif window == s.window - 1 then
        s.previous = tonumber(known[2])
      end
    end
    s.elapsed = math.max(0, now - s.window * s.span)
    s.room = s.capacity - s.current
    if s.algorithm == 'sliding' then s.room = s.room - s.previous * (1 - s.elapsed / s.span) end
  end
  s.room = s.room + 1e-9
  if s.room < s.cost then fits = false end
  limits[i] = s
end
local replies = {}
for i, s in ipairs(limits) do
  local taken = 0
  if how == 'add' then taken = s.cost end
  if how == 'take' and fits then
    local share = math.max(s.waiting, s.room / nodes, s.capacity / 32)
    taken = math.max(1, math.floor(math.min(s.want, share, s.room) / s.cost)) * s.cost
  end
  if s.algorithm == 'token_bucket' then
    s.level = math.max(0, s.level - taken)
    if taken > 0 then
      redis.call('HSET', KEYS[i], 'l', string.format('%.17g', s.level), 't', now)
      local full = math.min(31536000000, math.ceil((s.capacity - s.level) / s.rate * 1000))
      redis.call('PEXPIRE', KEYS[i], full + 1000)
    end
  elseif taken > 0 then
    s.current = s.current + taken
    redis.call('HSET', KEYS[i], 'w', s.window, 'c', s.current, 'p', s.previous)
    redis.call('PEXPIRE', KEYS[i], (s.window + 2) * s.span - now)
  end
  replies[i] = { taken, s.current, s.previous, s.elapsed, math.floor(s.level * 1000) }
end
return replies
`;

const sha = new Bun.CryptoHasher("sha1").update(limitScript).digest("hex");

interface Sender {
  send(command: string, words: string[]): Promise<unknown>;
}

/** Runs the script; a server that has restarted gets its text again. */
export const runLimitScript = (client: Sender, words: readonly string[]): Promise<unknown> =>
  client.send("EVALSHA", [sha, ...words]).catch((error: Error) => {
    if (!error.message.startsWith("NOSCRIPT")) throw error;
    return client.send("EVAL", [limitScript, ...words]);
  });

export function wordsOf(
  keys: readonly string[],
  how: string,
  { nodes, demands }: { readonly nodes: number; readonly demands: readonly SharedDemand[] },
): string[] {
  const words = [String(keys.length), ...keys, how, String(nodes)];
  for (const { algorithm, windowMs, capacity, perSecond, cost, waiting, want } of demands)
    words.push(
      algorithm,
      ...[windowMs, capacity, perSecond, cost, waiting, want].map((number) => String(number)),
    );
  return words;
}

export const readCounts = (reply: unknown): SharedCount[] =>
  (reply as number[][]).map(([taken = 0, current = 0, previous = 0, elapsedMs = 0, level = 0]) => ({
    taken,
    current,
    previous,
    elapsedMs,
    level: level / 1000,
  }));
