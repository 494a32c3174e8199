// The state of the live tail: pause, rate, sampling; knows no request.
import { Badge, Button, Group, Text } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useShortcut } from "../../parts/shortcut.ts";
import { statusClasses, type TailView } from "./request-tail.ts";
import type { Tail } from "./use-tail.ts";

export type Hold = "none" | "paused" | "pointed";

interface Props {
  readonly tail: Tail;
  readonly hold: Hold;
  readonly onPause: (isPaused: boolean) => void;
}

const count = new Intl.NumberFormat("en");

export function TailState({ tail, hold, onPause }: Props) {
  const isPaused = hold === "paused";
  useShortcut("p", () => onPause(!isPaused));
  const { view, isOpen } = tail;
  const Icon = isPaused ? IconPlayerPlay : IconPlayerPause;
  return (
    <Group gap="sm" mih={36} role="group" aria-label="Live tail">
      <Button
        size="xs"
        variant={isPaused ? "filled" : "default"}
        leftSection={<Icon size={16} />}
        onClick={() => onPause(!isPaused)}
      >
        {isPaused ? "Resume" : "Pause"}
      </Button>
      <Badge
        role="status"
        variant="light"
        tt="none"
        size="lg"
        color={!isOpen ? "gray" : hold === "none" ? "teal" : "yellow"}
      >
        {!isOpen ? "Connecting" : stateWords[hold]}
      </Badge>
      <Text size="sm" c="dimmed" data-testid="tail-rate">
        {count.format(view.perSecond)} per second
      </Text>
      <Counts view={view} />
      <Text size="sm" c="dimmed" data-testid="tail-note">
        {notesOf(view, hold).join(" · ")}
      </Text>
    </Group>
  );
}

const stateWords: Readonly<Record<Hold, string>> = {
  none: "Live",
  paused: "Paused",
  pointed: "Held while you point at the list",
};

/** Notes about buffered, sampled and dropped requests. */
function notesOf(view: TailView, hold: Hold): string[] {
  const notes: string[] = [];
  if (hold !== "none" && view.waiting > 0) notes.push(`${count.format(view.waiting)} new buffered`);
  if (view.share < 0.95) notes.push(`Sampled: about 1 in ${Math.round(1 / view.share)} is shown`);
  if (view.sampledOut > 0) notes.push(`${count.format(view.sampledOut)} not shown`);
  if (view.dropped > 0) notes.push(`${count.format(view.dropped)} not sent by the gateway`);
  return notes;
}

const words: Readonly<Record<string, string>> = { none: "streams or no status" };

/** All received requests, shown or not. */
function Counts({ view }: { readonly view: TailView }) {
  if (view.seen === 0) return null;
  const shown = statusClasses.filter((name) => view.byClass[name] > 0);
  return (
    <Text size="sm" c="dimmed" data-testid="tail-counts">
      {count.format(view.seen)} since this page was opened:{" "}
      {shown.map((name) => `${count.format(view.byClass[name])} ${words[name] ?? name}`).join(", ")}
    </Text>
  );
}
