// How the time of one request was spent, as a bar and in words; knows nothing else of the request.
import { Box, Group, Stack, Text } from "@mantine/core";
import { inMilliseconds } from "../../parts/quantities.ts";
import type { RequestRow } from "./request-tail.ts";

interface Phase {
  readonly label: string;
  readonly ms: number;
  /** A colour of the theme. */
  readonly color: string;
}

/** Parts that follow one another and make up the whole. */
export function phasesOf({ timings, attempts }: Pick<RequestRow, "timings" | "attempts">): Phase[] {
  const { connect, first_byte: firstByte, total } = timings;
  const queue = timings.queue ?? 0;
  // Nothing is known of plugins that did not let the request go on, but of the wait that was part of them.
  const plugins = Math.max(timings.plugins ?? 0, queue);
  const before = plugins + (connect ?? 0);
  const waited = attempts > 1 ? "Waiting for targets, with retries" : "Waiting for the target";
  const head = firstByte === null ? total : firstByte;
  const phases: Phase[] = [
    { label: "Waiting for its turn", ms: queue, color: "yellow" },
    { label: "Plugins", ms: plugins - queue, color: "violet" },
    { label: "Connecting to the target", ms: connect ?? 0, color: "orange" },
    {
      label: attempts === 0 ? "In the gateway" : waited,
      ms: Math.max(0, head - before),
      color: attempts === 0 ? "gray" : "brand",
    },
    { label: "Sending the answer", ms: Math.max(0, total - head), color: "teal" },
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
            Altogether
          </Text>
          <Text size="sm" fw={600} className="mono">
            {inMilliseconds(request.timings.total)}
          </Text>
        </Group>
      </Stack>
    </Stack>
  );
}
