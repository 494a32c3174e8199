// The delivery state of an alert, as a dot with a word; reads nothing.
import { Group, Text } from "@mantine/core";
import type { Read } from "../../api/resources.ts";
import { RelativeTime, StatusDot } from "../../parts/status.tsx";

type Alert = Read<"alerts">;

export const deliveryOf = ({ enabled, delivery }: Alert): string => {
  if (!enabled) return "off";
  if (delivery.last_error !== null) return "failed";
  if (delivery.waiting > 0) return "pending";
  return delivery.last_sent_at === null ? "nothing sent yet" : "ok";
};

export function DeliveryState({ alert }: { readonly alert: Alert }) {
  const { delivery } = alert;
  const lost = delivery.lost === 0 ? null : `${delivery.lost} lost since the start`;
  const state = deliveryOf(alert);
  return (
    <Group gap="xs">
      <StatusDot
        state={state === "ok" ? "delivered" : state}
        {...toneOf(state)}
        detail={delivery.last_error ?? lost}
      />
      {delivery.last_sent_at !== null && (
        <Text size="xs" c="dimmed">
          <RelativeTime at={delivery.last_sent_at} />
        </Text>
      )}
    </Group>
  );
}

const toneOf = (state: string) => (state === "ok" ? ({ tone: "good" } as const) : {});
