// Asks before a change that shuts its own sender out of this UI, which the gateway refuses unless it is forced; knows no page.
import { Stack, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { ApiError } from "../api/error.ts";

/** Goes into the query of the request. */
export type Force = { readonly force?: 1 };

/** Sends, and sends again with force if the gateway asks for that and the person agrees. Rejects with the refusal otherwise. */
export async function sendUnlessShutOut<T>(send: (query: Force) => Promise<T>): Promise<T> {
  try {
    return await send({});
  } catch (error) {
    if (!isShutOut(error) || !(await confirmShutOut(error))) throw error;
    return await send({ force: 1 });
  }
}

const isShutOut = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status === 409 && error.message.includes("?force=1");

function confirmShutOut({ detail }: ApiError): Promise<boolean> {
  const address = /would shut out (\S+),/.exec(detail)?.[1] ?? null;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  modals.openConfirmModal({
    title: "Shut yourself out?",
    children: (
      <Stack gap="xs">
        <Text size="sm">
          {address === null ? "Your address" : `You come from ${address}, which`} is in none of the
          networks that may use this UI and the API from then on. The page is closed to you when you
          save.
        </Text>
        <Text size="sm">
          On the machine itself, <code>sluice reset-admin-networks</code> opens it again.
        </Text>
      </Stack>
    ),
    labels: { confirm: "Save all the same", cancel: "Cancel" },
    confirmProps: { color: "red" },
    onConfirm: () => resolve(true),
    onClose: () => resolve(false),
  });
  return promise;
}
