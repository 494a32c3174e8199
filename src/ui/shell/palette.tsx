// Ctrl+K: opens the palette, whose code loads at first use; knows no page.
import { Kbd } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { flushSync } from "react-dom";

const PaletteDialog = lazy(() => import("./palette-dialog.tsx"));

export function Palette() {
  const [isOpen, { open, close }] = useDisclosure(false);
  const [query, setQuery] = useState("");
  useEffect(() => {
    if (!isOpen) return;
    // Until the input has the focus.
    const onKey = (event: KeyboardEvent) => {
      if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof Element && event.target.closest('[role="dialog"]')) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      setQuery((typed) => typed + event.key);
    };
    addEventListener("keydown", onKey, true);
    return () => removeEventListener("keydown", onKey, true);
  }, [isOpen]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      // The browser's own search field must not get the focus.
      event.preventDefault();
      if (document.querySelector('[role="dialog"]') !== null) return;
      setQuery("");
      // At once: the next key may come before the next frame.
      flushSync(open);
    };
    // The code loads while the page is read, so that no key is lost to waiting for it.
    void import("./palette-dialog.tsx").catch(() => undefined);
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [open]);
  return (
    <>
      <button
        type="button"
        className="palette-button"
        onClick={() => {
          setQuery("");
          open();
        }}
      >
        <IconSearch size={16} aria-hidden="true" />
        <span className="words-on-wide">Search</span>
        <Kbd size="xs" visibleFrom="sm">
          Ctrl K
        </Kbd>
      </button>
      {isOpen && (
        <Suspense>
          <PaletteDialog query={query} onQuery={setQuery} onClose={close} />
        </Suspense>
      )}
    </>
  );
}
