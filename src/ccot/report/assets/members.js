// The members of clusters: a table to search, sort, filter and take away.

const PAGE_SIZE = 20;

class Members {
  constructor(onMember) {
    Object.assign(this, { onMember, sort: { by: "cluster", descending: false }, page: 0 });
    this.collator = new Intl.Collator("en", { numeric: true });
    for (const [id, type] of [["search", "input"], ["cluster-filter", "change"]]) {
      byId(id).addEventListener(type, () => { this.page = 0; this.draw(); });
    }
    byId("download").addEventListener("click", () => this.download());
  }

  show(side, partition, names) {
    Object.assign(this, { side, partition, names, page: 0 });
    const options = partition.sizes.map((size, k) =>
      element("option", { value: k }, `${clusterTitle(side, k)} (${size})`));
    fill("cluster-filter", element("option", { value: "" }, "All clusters"), ...options);
    this.draw();
  }

  get listed() {
    const wanted = byId("search").value.trim().toLowerCase();
    const cluster = byId("cluster-filter").value;
    const { labels, confidence } = this.partition;
    const found = [];
    for (let point = 0; point < labels.length; point++) {
      if (cluster !== "" && labels[point] !== Number(cluster)) continue;
      if (wanted && !this.names[point].toLowerCase().includes(wanted)) continue;
      found.push(point);
    }
    const { by, descending } = this.sort;
    const compare = {
      name: (a, b) => this.collator.compare(this.names[a], this.names[b]),
      cluster: (a, b) => labels[a] - labels[b],
      confidence: (a, b) => (confidence ? confidence[a] - confidence[b] : 0),
    }[by];
    return found.sort((a, b) => (descending ? compare(b, a) : compare(a, b)) || a - b);
  }

  draw() {
    const listed = this.listed;
    const shownNow = listed.slice(this.page * PAGE_SIZE, (this.page + 1) * PAGE_SIZE);
    const total = this.partition.labels.length;
    byId("member-count").textContent = listed.length === total
      ? count(total, this.side)
      : `${listed.length.toLocaleString("en")} of ${count(total, this.side)}`;
    const heads = [["name", "Name"], ["cluster", "Cluster"], ["confidence", "Confidence"]];
    fill("member-table", element(
      "table", { className: "rows" },
      element("thead", {}, element("tr", {}, ...heads.map(([by, text]) => this.head(by, text)))),
      element("tbody", {}, ...shownNow.map((point) => this.line(point))),
    ));
    this.drawPages(listed.length);
  }

  head(by, text) {
    const { sort } = this;
    const order = sort.by !== by ? "none" : sort.descending ? "descending" : "ascending";
    const press = () => {
      this.sort = { by, descending: sort.by === by && !sort.descending };
      this.page = 0;
      this.draw();
      byId("member-table").querySelector(`[data-by="${by}"]`).focus();
    };
    return element(
      "th", { scope: "col", "aria-sort": order },
      element("button", { type: "button", className: "plain", onclick: press, "data-by": by }, text),
    );
  }

  line(point) {
    const { labels, confidence } = this.partition;
    const name = this.onMember
      ? element("button", {
        type: "button", className: "plain", title: "Show in the matrix",
        onclick: () => this.onMember(point),
      }, this.names[point])
      : this.names[point];
    const sure = confidence
      ? [(confidence[point] / 1000).toFixed(2), element("span", { className: "meter" },
        element("i", { style: { width: `${confidence[point] / 10}%` } }))]
      : ["–"];
    return element(
      "tr", {}, element("td", {}, name),
      element("td", {}, chip(this.side, labels[point]), clusterTitle(this.side, labels[point])),
      element("td", {}, ...sure),
    );
  }

  drawPages(total) {
    const last = Math.ceil(total / PAGE_SIZE) - 1;
    if (last < 1) return fill("member-pages");
    const turn = (text, by) => element("button", {
      type: "button", disabled: this.page + by < 0 || this.page + by > last,
      onclick: () => { this.page += by; this.draw(); },
    }, text);
    const [from, to] = [this.page * PAGE_SIZE + 1, Math.min((this.page + 1) * PAGE_SIZE, total)];
    fill("member-pages", turn("Previous", -1),
      element("span", {}, `${from}–${to} of ${total.toLocaleString("en")}`), turn("Next", 1));
  }

  download() {
    const { labels, confidence } = this.partition;
    const lines = this.listed.map((point) => [
      this.names[point], idOf(this.side, labels[point]), givenName(this.side, labels[point]),
      confidence ? (confidence[point] / 1000).toFixed(3) : "",
    ]);
    download(asCsv([["name", "cluster", "cluster_name", "confidence"], ...lines]),
      "text/csv;charset=utf-8", `${this.side}_labels.csv`);
  }
}
