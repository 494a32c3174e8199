// The timing of one request by phase, as a bar and in words.
import { Box, Group, Stack, Text } from "@mantine/core";
import { inMilliseconds } from "../../parts/quantities.ts";
import type { RequestRow } from "./request-tail.ts";

interface Phase {
  readonly label: string;
  readonly ms: number;
  /** A color of the theme. */
  readonly color: string;
}

/** Consecutive phases that add up to the total. */
export function phasesOf({ timings, attempts }: Pick<RequestRow, "timings" | "attempts">): Phase[] {
  const { connect, first_byte: firstByte, total } = timings;
  const queue = timings.queue ?? 0;
  // A plugin that ended the request has no timing of its own, except its queueing time.
  const plugins = Math.max(timings.plugins ?? 0, queue);
  const before = plugins + (connect ?? 0);
  const waited = attempts > 1 ? "Upstream response, with retries" : "Upstream response";
  const head = firstByte === null ? total : firstByte;
  const phases: Phase[] = [
    { label: "Queue", ms: queue, color: "yellow" },
    { label: "Plugins", ms: plugins - queue, color: "violet" },
    { label: "Upstream connect", ms: connect ?? 0, color: "orange" },
    {
      label: attempts === 0 ? "Gateway" : waited,
      ms: Math.max(0, head - before),
      color: attempts === 0 ? "gray" : "brand",
    },
    { label: "Sending the response", ms: Math.max(0, total - head), color: "teal" },
  ];
  return phases.filter(({ ms }) => ms > 0);
}

export function PhaseBar({ request }: { readonly request: RequestRow }) {
  const phases = phasesOf(request);
  const total = phases.reduce((sum, { ms }) => sum + ms, 0);
  return (
    <Stack gap="xs">
      <Group gap={2} wrap="nowrap" h={18} aria-hidden="true">
        {phases.map(({ label, ms, color }) => (
          <Box
            key={label}
            h="100%"
            miw={3}
            bg={`${color}.6`}
            style={{ flex: `${ms / total} 1 0`, borderRadius: 3 }}
          />
        ))}
      </Group>
      <Stack gap={2} component="ul" m={0} p={0} style={{ listStyle: "none" }}>
        {phases.map(({ label, ms, color }) => (
          <Group key={label} component="li" gap="xs" wrap="nowrap">
            <Box w={10} h={10} bg={`${color}.6`} style={{ borderRadius: 3, flexShrink: 0 }} />
            <Text size="sm" style={{ flex: 1 }}>
              {label}
            </Text>
            <Text size="sm" className="mono">
              {inMilliseconds(ms)}
            </Text>
          </Group>
        ))}
        <Group component="li" gap="xs" wrap="nowrap">
          <Text size="sm" fw={600} style={{ flex: 1 }} pl={22}>
            Total
          </Text>
          <Text size="sm" fw={600} className="mono">
            {inMilliseconds(request.timings.total)}
          </Text>
        </Group>
      </Stack>
    </Stack>
  );
}
