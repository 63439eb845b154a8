/**
 * Large files count as requests. If this page's are refused because the caller has sent too many,
 * says when to come back, and then loads the page again. Runs before the page's other files load.
 */
const style = document.currentScript.dataset.style;
let isExplained = false;
addEventListener(
  "error",
  ({ target }) => {
    const url = target.src ?? target.href;
    if (!url || isExplained) return;
    isExplained = true;
    void explain(url);
  },
  // Errors of files do not bubble.
  true,
);

async function explain(url) {
  // The page's own script still runs.
  if (document.readyState !== "complete")
    await new Promise((resolve) => addEventListener("load", resolve));
  const title = document.createElement("h1");
  const text = document.createElement("p");
  const notice = document.createElement("main");
  notice.id = "refused";
  notice.append(title, text);
  addStyle();
  document.body.replaceChildren(notice);

  // A refusal costs nothing.
  const answer = await fetch(url).catch(() => undefined);
  const seconds = Number(answer?.headers.get("retry-after"));
  if (answer?.status !== 429 || !seconds) {
    title.textContent = "This page could not be loaded";
    text.textContent = "Reload it in a minute.";
    return;
  }
  title.textContent = "Too many requests";
  const end = Date.now() + seconds * 1000;
  const show = () => {
    const left = Math.ceil((end - Date.now()) / 1000);
    text.textContent = `Your network has sent many requests in a short time. This page opens in ${Math.max(0, left)} s.`;
    if (left <= 0) location.reload();
  };
  show();
  setInterval(show, 1000);
}

function addStyle() {
  const link = document.createElement("link");
  Object.assign(link, { rel: "stylesheet", href: style });
  document.head.append(link);
}
