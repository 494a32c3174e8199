// Asks before something is deleted and names what goes with it or stands in the way; sends nothing by itself but dry runs.
import { Alert, Button, Checkbox, Group, List, Loader, Modal, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { useBulk } from "../api/bulk.ts";
import { useConnection } from "../api/connection-context.ts";
import { toMessage } from "../api/error.ts";
import { nameOf, type ResourceKey, resources } from "../api/resources.ts";

/** What is to be deleted. */
export interface Doomed {
  readonly id: string;
  readonly name: string;
}

export const toDoomed = (object: { readonly id: string }): Doomed => ({
  id: object.id,
  name: nameOf(object),
});

interface Props {
  readonly resource: ResourceKey;
  /** Null or empty: nothing is asked. */
  readonly objects: readonly Doomed[] | null;
  readonly onClose: () => void;
  readonly onDeleted?: () => void;
}

/** What a dry run says about deleting the objects. */
interface Forecast {
  /** Sentences of the API: `service "web" is used by route "shop"`. */
  readonly blockers: readonly string[];
  /** Rules that deleting more does not help against: `the last admin cannot be deleted`. */
  readonly refusals: readonly string[];
  /** Names of what goes along. */
  readonly along: readonly string[];
}

/** `<ConfirmDelete resource="services" objects={doomed} onClose={…} />` */
export function ConfirmDelete({ resource, objects, onClose, onDeleted }: Props) {
  const [cascade, setCascade] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const bulk = useBulk(resource);
  const isOpen = objects !== null && objects.length > 0;
  const forecast = useForecast(resource, isOpen ? objects : [], cascade);
  const close = () => {
    setCascade(false);
    setFailure(null);
    onClose();
  };
  const remove = async () => {
    setBusy(true);
    setFailure(null);
    try {
      await bulk(objects ?? [], cascade ? "cascade" : "delete");
      close();
      onDeleted?.();
    } catch (error) {
      setFailure(toMessage(error));
    } finally {
      setBusy(false);
    }
  };
  const { word, plural } = resources[resource];
  const title =
    objects?.length === 1
      ? `Delete ${word} ${objects[0]?.name}?`
      : `Delete ${objects?.length} ${plural}?`;
  const isBlocked = forecast !== null && forecast.blockers.length > 0 && !cascade;
  const isRefused = forecast !== null && forecast.refusals.length > 0;
  return (
    <Modal opened={isOpen} onClose={close} title={title}>
      <Stack>
        <ForecastText forecast={forecast} />
        {(cascade || isBlocked) && !isRefused && (
          <Checkbox
            label="Delete what uses it, too"
            checked={cascade}
            onChange={(event) => setCascade(event.currentTarget.checked)}
          />
        )}
        {failure !== null && (
          <Alert color="red" role="alert">
            {failure}
          </Alert>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={close} data-autofocus>
            Cancel
          </Button>
          <Button
            color="red"
            loading={isBusy}
            disabled={forecast === null || isBlocked || isRefused}
            onClick={remove}
          >
            Delete
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function ForecastText({ forecast }: { readonly forecast: Forecast | null }) {
  if (forecast === null) return <Loader size="sm" aria-label="Looking what depends on it" />;
  const { refusals, blockers, along } = forecast;
  if (refusals.length > 0) return <Named text="This is refused:" names={refusals} />;
  if (blockers.length > 0) return <Named text="Something still uses it:" names={blockers} />;
  if (along.length > 0) return <Named text="This goes with it:" names={along} />;
  return <Text size="sm">Nothing else depends on it.</Text>;
}

function Named({ text, names }: { readonly text: string; readonly names: readonly string[] }) {
  return (
    <Stack gap={4}>
      <Text size="sm">{text}</Text>
      <List size="sm" style={{ overflowWrap: "anywhere" }}>
        {names.slice(0, 20).map((name) => (
          <List.Item key={name}>{name}</List.Item>
        ))}
        {names.length > 20 && <List.Item>and {names.length - 20} more</List.Item>}
      </List>
    </Stack>
  );
}

/** More would be many calls for a list that nobody reads. */
const MAX_FORECASTS = 50;

function useForecast(
  resource: ResourceKey,
  objects: readonly Doomed[],
  cascade: boolean,
): Forecast | null {
  const connection = useConnection();
  const [forecast, setForecast] = useState<Forecast | null>(null);
  const ids = objects.map(({ id }) => id).join();
  useEffect(() => {
    setForecast(null);
    if (ids === "") return;
    const stop = new AbortController();
    const ask = async (id: string): Promise<Forecast> => {
      const query = { dry_run: 1, ...(cascade ? { cascade: 1 } : {}) };
      const options = { method: "DELETE", query, signal: stop.signal } as const;
      try {
        const { alsoDeleted } = await connection.send(`/${resource}/${id}`, options);
        return { blockers: [], refusals: [], along: alsoDeleted?.split(", ") ?? [] };
      } catch (error) {
        const text = toMessage(error);
        const isUsed = / is used by /.test(text);
        return { blockers: isUsed ? [text] : [], refusals: isUsed ? [] : [text], along: [] };
      }
    };
    void Promise.all(ids.split(",").slice(0, MAX_FORECASTS).map(ask)).then((all) => {
      if (stop.signal.aborted) return;
      const unique = (names: readonly string[]) => [...new Set(names)];
      setForecast({
        blockers: unique(all.flatMap(({ blockers }) => blockers)),
        refusals: unique(all.flatMap(({ refusals }) => refusals)),
        along: unique(all.flatMap(({ along }) => along)),
      });
    });
    return () => stop.abort();
  }, [connection, resource, ids, cascade]);
  return forecast;
}
