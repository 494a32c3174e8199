// The elapsed lifetime of a certificate, as a bar and in words; knows no issuance.
import { Box, Group, Progress, Stack, Text } from "@mantine/core";
import type { Read } from "../../api/resources.ts";
import { relativeTime } from "../../parts/status.tsx";

type Certificate = Read<"certificates">;

const DAY = 86_400_000;

/** Null while nothing is issued. */
export function lifeOf({ not_before: from, not_after: to }: Certificate, now = Date.now()) {
  if (from === null || to === null) return null;
  const [start, end] = [Date.parse(from), Date.parse(to)];
  const share = Math.min(1, Math.max(0, (now - start) / (end - start)));
  return { start, end, share, daysLeft: (end - now) / DAY };
}

/** ACME certificates renew in the last third of their lifetime, so a short rest is no warning at first. */
function colorOf(certificate: Certificate, daysLeft: number, share: number): string {
  if (daysLeft <= 0) return "red";
  if (certificate.source !== "upload")
    return share > 0.9 ? "red" : share > 0.75 ? "yellow" : "teal";
  return daysLeft < 7 ? "red" : daysLeft < 30 ? "yellow" : "teal";
}

export const inDays = (days: number): string =>
  days >= 730
    ? `${Math.round(days / 365.25)} years left`
    : days >= 2
      ? `${Math.floor(days)} days left`
      : days > 0
        ? `${Math.ceil(days * 24)} h left`
        : "over";

/** For lists. */
export function ValidityBar({ certificate }: { readonly certificate: Certificate }) {
  const life = lifeOf(certificate);
  if (life === null)
    return (
      <Text size="sm" c="dimmed">
        not issued yet
      </Text>
    );
  const { share, daysLeft, end } = life;
  return (
    <Stack gap={3} w={160} maw="100%" title={new Date(end).toLocaleString()}>
      <Text size="sm">
        {daysLeft > 0 ? inDays(daysLeft) : `expired ${relativeTime(certificate.not_after ?? "")}`}
      </Text>
      <Progress
        value={Math.max(3, (1 - share) * 100)}
        color={colorOf(certificate, daysLeft, share)}
        size="sm"
        aria-hidden="true"
      />
    </Stack>
  );
}

interface Mark {
  readonly at: number;
  readonly label: string;
}

/** For the page of one certificate: from issue to expiry, with now and the next renewal. */
export function ValidityTimeline({ certificate }: { readonly certificate: Certificate }) {
  const life = lifeOf(certificate);
  if (life === null) return null;
  const { start, end, share, daysLeft } = life;
  const renewal = certificate.next_attempt_at;
  const percentAt = (time: number) =>
    Math.min(100, Math.max(0, ((time - start) / (end - start)) * 100));
  const marks: readonly Mark[] =
    renewal === null ? [] : [{ at: Date.parse(renewal), label: "renewal" }];
  return (
    <Stack
      gap={4}
      role="img"
      aria-label={`${Math.round(share * 100)} % of its lifetime elapsed, ${inDays(daysLeft)}`}
    >
      <Box pos="relative" pt={18}>
        <Progress
          value={share * 100}
          color={colorOf(certificate, daysLeft, share)}
          size="lg"
          aria-hidden="true"
        />
        {marks
          .filter(({ at }) => at > start && at <= end)
          .map(({ at, label }) => (
            <Box
              key={label}
              pos="absolute"
              top={0}
              style={{ left: `${percentAt(at)}%`, transform: "translateX(-50%)" }}
            >
              <Text size="xs" c="dimmed" ta="center" lh={1.2}>
                {label}
              </Text>
              <Box w={2} h={20} mx="auto" bg="var(--mantine-color-dimmed)" />
            </Box>
          ))}
      </Box>
      <Group justify="space-between" gap="xs">
        <Text size="xs" c="dimmed">
          {new Date(start).toLocaleDateString()}
        </Text>
        <Text size="xs" fw={600}>
          {inDays(daysLeft)}
        </Text>
        <Text size="xs" c="dimmed">
          {new Date(end).toLocaleDateString()}
        </Text>
      </Group>
    </Stack>
  );
}
